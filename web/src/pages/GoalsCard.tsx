import { useState } from "preact/hooks";
import type { GoalRow, Goals } from "../api/types";
import { useAnswer } from "../api/use";
import { mayDefine, readsMoney, useScene } from "../context";
import { count, dayRange, growth, money, share } from "../lib/format";
import { toggled } from "../lib/filters";
import { choiceOf, writeAsked } from "../lib/people";
import { compareOf, floorIn, formerOf, kept, windowOf } from "../lib/period";
import { setQuery } from "../lib/router";
import { Answered, Card, State, Tool } from "../parts/Card";
import { GoalDialog, MakeGoal } from "../parts/GoalDialog";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Change } from "../parts/Tiles";
import layout from "./layout.module.css";

/** The condition that someone reached a goal. */
const reached = (goal: string) => writeAsked({ part: "did", atLeast: 1, within: "window", kind: "goal", value: goal });

/** What people reach. A click on a goal leaves only its converters in all figures. */
export function GoalsCard() {
  const { project, query, today, floor, session } = useScene();
  const [isOpen, setOpen] = useState(false);
  const window = kept(windowOf(query, today), floor)!;
  const former = formerOf(query, window);
  const compare = former && !floorIn(former, floor) ? compareOf(query) : null;
  const body = { start_date: window.start_date, end_date: window.end_date, compare, ...choiceOf(query) };
  const answer = useAnswer<Goals>(`/projects/${project}/analytics/goals`, body, project);
  const columns = columnsOf(answer.data, window.start_date === today);
  const rows = answer.data?.goals;
  const tools = rows?.length ? (
    <>
      {mayDefine(session) && <Tool icon="plus" label="Make a goal" onClick={() => setOpen(true)} />}
      <CsvTool name="Goals" columns={columns} rows={rows} />
    </>
  ) : undefined;
  return (
    <Card title="Goals" tools={tools} isStale={answer.isStale} isBusy={answer.isLoading}>
      <Answered answer={answer} height={160}>
        {({ goals }) =>
          goals.length ? (
            <Table caption="Goals" columns={columns} rows={goals} />
          ) : (
            <State title="No goals yet">
              <p>A goal is an event or a page that you want people to reach, such as a signup. headcount counts how many reach it, also in the past.</p>
              <MakeGoal />
            </State>
          )
        }
      </Answered>
      {isOpen && <GoalDialog onClose={() => setOpen(false)} />}
    </Card>
  );
}

function columnsOf(data: Goals | undefined, isRunning: boolean): Column<GoalRow>[] {
  const { session } = useScene();
  const previous = data?.previous;
  const against = previous ? dayRange(previous.start_date, previous.end_date) : undefined;
  const change: Column<GoalRow> = {
    name: "Change",
    value: ({ conversions, previous }) => (previous ? growth(conversions, previous.conversions) : null),
    show: ({ conversions, previous }) => (isRunning ? "so far" : <Change now={conversions} before={previous?.conversions} against={against} />),
    isNumber: true,
  };
  const revenue: Column<GoalRow> = { name: "Revenue", value: ({ revenue }) => revenue, show: ({ revenue }) => money(revenue ?? 0, data?.currency), isNumber: true };
  return [
    { name: "Goal", value: ({ name }) => name, show: (goal) => <GoalName goal={goal} /> },
    { name: "Conversions", value: ({ conversions }) => conversions, show: ({ conversions }) => count(conversions), isNumber: true },
    ...(previous ? [change] : []),
    { name: "Converters", value: ({ converters }) => converters, show: ({ converters }) => count(converters), isNumber: true },
    { name: "Rate", value: ({ rate }) => rate, show: ({ rate }) => share(rate), isNumber: true },
    ...(readsMoney(session) ? [revenue] : []),
  ];
}

function GoalName({ goal: { goal_id, name } }: { goal: GoalRow }) {
  const { query } = useScene();
  const asked = query.getAll("p");
  const isOn = asked.includes(reached(goal_id));
  return (
    <button type="button" class={layout.pick} aria-pressed={isOn} title={isOn ? `Remove the filter on ${name}` : `Only people who reached ${name}`} onClick={() => setQuery({ p: toggled(asked, reached(goal_id)) })}>
      {name}
    </button>
  );
}
