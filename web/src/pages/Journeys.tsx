import { useEffect, useState } from "preact/hooks";
import type { JourneyNode, Journeys as Answer } from "../api/types";
import { useAnswer } from "../api/use";
import { readsMoney, useScene } from "../context";
import { count, counted, money, share } from "../lib/format";
import { VALUES, DEPTHS, ROWS, journeyOf, type JourneyQuestion } from "../lib/journey";
import { choiceOf } from "../lib/people";
import { floorIn, kept, windowOf } from "../lib/period";
import { setQuery } from "../lib/router";
import { Answered, Card, State, buttons } from "../parts/Card";
import { Suggested } from "../parts/EventPicker";
import { FilterChips } from "../parts/Filters";
import { Select, form } from "../parts/Form";
import { Gone, Kept } from "../parts/Kept";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Unconverted } from "../parts/Unconverted";
import { JourneyFlow } from "./JourneyFlow";
import { GroupsTool } from "./JourneyGroups";
import layout from "./layout.module.css";

/** Journeys that begin, or end, with a value. */
export type Turn = "begin" | "end";
export const turn = (to: Turn, value: string) => setQuery({ begin: null, end: null, [to]: value });

export function Journeys() {
  const { query, today, floor } = useScene();
  const asked = windowOf(query, today);
  const window = kept(asked, floor);
  const question = journeyOf(query);
  return (
    <>
      <FilterChips />
      <div class={layout.stack}>
        <Card title="Journeys" tools={question.by !== "event_name" && <GroupsTool />}>
          <Controls question={question} />
        </Card>
        {window ? (
          <Result question={question} start_date={window.start_date} end_date={window.end_date} since={floorIn(asked, floor)} />
        ) : (
          <Card title="Flow" isBare>
            <Gone />
          </Card>
        )}
      </div>
    </>
  );
}

function Controls({ question }: { question: JourneyQuestion }) {
  const { by, from, to, depth, rows } = question;
  const placed: Turn | "" = from ? "begin" : to ? "end" : "";
  const value = from ?? to ?? "";
  const [way, setWay] = useState<Turn | "">(placed);
  const [text, setText] = useState(value);
  useEffect(() => {
    setWay(placed);
    setText(value);
  }, [placed, value]);
  const choose = (name: string, first: string) => (value: string) => setQuery({ [name]: value === first ? null : value }, true);
  const numbers = (all: number[], unit: string): [string, string][] => all.map((number) => [String(number), counted(number, unit)]);
  const apply = (event: Event) => {
    event.preventDefault();
    if (way) turn(way, text);
  };
  const noun = by === "event_name" ? "an event" : "a page";
  const ways: [string, string][] = [
    ["", "At the start of the session"],
    ["begin", `At ${noun}`],
    ["end", `Before ${noun}`],
  ];
  return (
    <form class={form.row} onSubmit={apply}>
      <Select label="Show" value={by} options={VALUES} onSelect={(by) => setQuery({ by: by === "path" ? null : by, begin: null, end: null }, true)} />
      <Select
        label="Begin"
        value={way}
        options={ways}
        onSelect={(way) => {
          setWay(way as Turn | "");
          if (!way) setQuery({ begin: null, end: null });
        }}
      />
      {way && <Suggested kind={by === "event_name" ? "event_name" : "page"} value={text} onText={setText} isBrief />}
      {way && (
        <button type="submit" class={buttons.plain}>
          Show
        </button>
      )}
      <Select label="Length" value={String(depth)} options={numbers(DEPTHS, "step")} onSelect={choose("depth", "5")} />
      <Select label="At each step" value={String(rows)} options={numbers(ROWS, "row")} onSelect={choose("rows", "10")} />
    </form>
  );
}

function Result({ question, start_date, end_date, since }: { question: JourneyQuestion; start_date: string; end_date: string; since: string | null }) {
  const { project, query } = useScene();
  const answer = useAnswer<Answer>(`/projects/${project}/analytics/journeys`, { ...question, start_date, end_date, ...choiceOf(query) }, JSON.stringify(question));
  return (
    <>
      <Card title="Flow" lead={leadOf(question, answer.data?.sessions)} isStale={answer.isStale} isBusy={answer.isLoading}>
        <Answered answer={answer} height={420}>
          {(data) => (
            <>
              <Kept since={since} />
              {data.unconverted && <Unconverted money={data.unconverted} currency={data.currency!} />}
              {data.sessions ? (
                <JourneyFlow data={data} isBackwards={!!question.to} />
              ) : (
                <State title="No journeys in this period">
                  <p>A journey is the order of the pages or events of a session. Choose another period, remove filters, or begin elsewhere.</p>
                </State>
              )}
            </>
          )}
        </Answered>
      </Card>
      {answer.data && answer.data.sessions > 0 && (
        <>
          <Steps data={answer.data} isBackwards={!!question.to} />
          <Commonest data={answer.data} isBackwards={!!question.to} />
        </>
      )}
    </>
  );
}

function leadOf({ from, to }: JourneyQuestion, sessions?: number): string | undefined {
  if (sessions === undefined) return undefined;
  const where = from ? ` from ${from}` : to ? ` to ${to}` : "";
  return `${counted(sessions, "session")}${where}. Click a box to see what leads there, or what follows.`;
}

export const nodeName = ({ value, other }: Pick<JourneyNode, "value" | "other">) => value ?? counted(other, "other value");

/** The name of a step, in the order in which people went. */
export const stepTitle = (step: number, isBackwards: boolean) => (isBackwards ? (step === 1 ? "Last" : `${step - 1}\u00a0before`) : `Step\u00a0${step}`);

/** The buttons that begin or end journeys at a value. */
export function Turns({ value }: { value: string }) {
  return (
    <div class={form.actions}>
      <button type="button" class={buttons.plain} aria-label={`From here: ${value}`} onClick={() => turn("begin", value)}>
        From here
      </button>
      <button type="button" class={buttons.plain} aria-label={`To here: ${value}`} onClick={() => turn("end", value)}>
        To here
      </button>
    </div>
  );
}

type StepRow = JourneyNode & { step: number };

/** The flow as a table, for keyboards and screen readers. */
function Steps({ data, isBackwards }: { data: Answer; isBackwards: boolean }) {
  const { session } = useScene();
  const hasMoney = readsMoney(session);
  const rows = data.steps.flatMap(({ nodes }, index): StepRow[] => nodes.map((node) => ({ ...node, step: index + 1 })));
  const revenue: Column<StepRow> = { name: "Revenue", value: ({ revenue }) => revenue, show: ({ revenue }) => money(revenue ?? 0, data.currency), isNumber: true };
  const columns: Column<StepRow>[] = [
    { name: "Value", value: nodeName },
    { name: "Step", value: ({ step }) => step, show: ({ step }) => stepTitle(step, isBackwards) },
    { name: "Sessions", value: ({ sessions }) => sessions, show: ({ sessions }) => count(sessions), isNumber: true },
    { name: "People", value: ({ users }) => users, show: ({ users }) => count(users), isNumber: true },
    { name: isBackwards ? "Beginnings" : "Exits", value: ({ exits }) => exits, show: ({ exits }) => count(exits), isNumber: true },
    ...(hasMoney ? [revenue] : []),
  ];
  const act: Column<StepRow> = { name: "Actions", isUnnamed: true, value: () => "", show: ({ value }) => value !== null && <Turns value={value} />, isNumber: true };
  return (
    <Card title="Steps" tools={<CsvTool name="Steps of journeys" columns={columns} rows={rows} />}>
      <Table caption="Steps" columns={[...columns, act]} rows={rows} />
    </Card>
  );
}

/** The commonest whole journeys. */
function Commonest({ data, isBackwards }: { data: Answer; isBackwards: boolean }) {
  const { session } = useScene();
  const columns: Column<Answer["top"][number]>[] = [
    { name: "Journey", value: ({ path }) => (isBackwards ? path.toReversed() : path).join(" → ") },
    { name: "Sessions", value: ({ sessions }) => sessions, show: ({ sessions }) => `${count(sessions)} (${share(sessions / data.sessions)})`, isNumber: true },
    { name: "People", value: ({ users }) => users, show: ({ users }) => count(users), isNumber: true },
    ...(readsMoney(session) ? [{ name: "Revenue", value: ({ revenue }: Answer["top"][number]) => revenue, show: ({ revenue }: Answer["top"][number]) => money(revenue ?? 0, data.currency), isNumber: true }] : []),
  ];
  return (
    <Card title="Commonest journeys" tools={<CsvTool name="Commonest journeys" columns={columns} rows={data.top} />}>
      <Table caption="Commonest journeys" columns={columns} rows={data.top} />
    </Card>
  );
}
