import type { Funnel, FunnelRow, FunnelStep } from "../api/types";
import { useAnswer } from "../api/use";
import { readsMoney, useScene } from "../context";
import { fieldName, toggled, valueFilter } from "../lib/filters";
import { count, dayRange, duration, share, valueName } from "../lib/format";
import { funnelOf, type FunnelQuestion } from "../lib/funnel";
import { choiceOf } from "../lib/people";
import { compareOf, floorIn, formerOf, kept, windowOf, type Window } from "../lib/period";
import { setQuery } from "../lib/router";
import { Answered, Card, State } from "../parts/Card";
import { FilterChips } from "../parts/Filters";
import { Gone, Kept } from "../parts/Kept";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Tiles, type Tile } from "../parts/Tiles";
import { Unconverted } from "../parts/Unconverted";
import { FunnelBars } from "./FunnelBars";
import { FunnelSteps } from "./FunnelSteps";
import { KeptFunnels } from "./KeptFunnels";
import layout from "./layout.module.css";

const MOST_ROWS = 100;

export function Funnels() {
  const { query, today, floor } = useScene();
  const asked = windowOf(query, today);
  const window = kept(asked, floor);
  const funnel = funnelOf(query);
  return (
    <>
      <FilterChips />
      <div class={layout.stack}>
        <Card title="Steps" tools={<KeptFunnels />}>
          <FunnelSteps funnel={funnel} />
        </Card>
        {!window && (
          <Card title="Funnel" isBare>
            <Gone />
          </Card>
        )}
        {window && funnel.steps.length < 2 && (
          <Card title="Funnel" isBare>
            <State title="A funnel has at least two steps">
              <p>A funnel counts how many people do one step after another, such as a visit to the prices, a signup and an order, and shows where they stop. Choose the steps above.</p>
            </State>
          </Card>
        )}
        {window && funnel.steps.length >= 2 && <Result funnel={funnel} window={window} since={floorIn(asked, floor)} />}
      </div>
    </>
  );
}

/** The body of the question, without a comparison. */
export function useFunnelBody({ steps, within, order, level }: FunnelQuestion, { start_date, end_date }: Window) {
  return { steps, within, order, level, start_date, end_date, ...choiceOf(useScene().query) };
}

function Result({ funnel, window, since }: { funnel: FunnelQuestion; window: Window; since: string | null }) {
  const { project, query, today, floor, session } = useScene();
  const former = formerOf(query, window);
  const compare = former && !floorIn(former, floor) ? compareOf(query) : null;
  const body = useFunnelBody(funnel, window);
  const { breakdown } = funnel;
  const answer = useAnswer<Funnel>(`/projects/${project}/analytics/funnel`, { ...body, compare, ...(breakdown && { breakdown, limit: MOST_ROWS }) }, JSON.stringify(funnel));
  const columns = stepColumns(answer.data, readsMoney(session));
  return (
    <>
      <Card title="Funnel" tools={<CsvTool name="Funnel" columns={columns} rows={answer.data?.steps} />} isStale={answer.isStale} isBusy={answer.isLoading}>
        <Answered answer={answer} height={320}>
          {(data) => (
            <>
              <Kept since={since} />
              <Tiles tiles={tilesOf(data)} isRunning={window.start_date === today} against={data.previous ? dayRange(data.previous.start_date, data.previous.end_date) : undefined} />
              {data.unconverted && <Unconverted money={data.unconverted} currency={data.currency!} />}
              {data.steps[0]!.entities ? <FunnelBars data={data} funnel={funnel} window={window} /> : <State title="Nobody did the first step in this period" />}
            </>
          )}
        </Answered>
      </Card>
      {breakdown && answer.data?.breakdown && <Breakdown data={answer.data} field={breakdown} rows={answer.data.breakdown} />}
    </>
  );
}

function tilesOf({ steps, completed, rate, median_sec, previous }: Funnel): Tile[] {
  const entered = steps[0]!.entities;
  return [
    { id: "started", name: "Started", value: count(entered), now: entered, before: previous?.steps[0] },
    { id: "completed", name: "Completed", value: count(completed), now: completed, before: previous?.completed },
    { id: "rate", name: "Rate", value: share(rate), now: rate, before: previous?.rate },
    { id: "median_sec", name: "Median time", value: median_sec === null ? "–" : duration(median_sec), hint: "first to last step" },
  ];
}

function stepColumns(data: Funnel | undefined, hasMoney: boolean): Column<FunnelStep>[] {
  const columns: (keyof FunnelStep)[] = ["name", "entities", "rate", "step_rate", "dropped", "median_sec", "p75_sec"];
  return [...columns, ...(hasMoney && data?.currency ? (["revenue"] as const) : [])].map((name) => ({ name, value: (step) => step[name] }));
}

/** The funnel of each value of a field at the first step. */
function Breakdown({ data, field, rows }: { data: Funnel; field: string; rows: FunnelRow[] }) {
  const { query } = useScene();
  const name = fieldName(field);
  const columns: Column<FunnelRow>[] = [
    {
      name,
      value: ({ value }) => value,
      show: ({ value }) => {
        const filter = valueFilter(field, value);
        const isOn = query.getAll("f").includes(filter);
        return (
          <button type="button" class={layout.pick} aria-pressed={isOn} title={isOn ? "Remove the filter" : `Filter by ${valueName(field, value)}`} onClick={() => setQuery({ f: toggled(query.getAll("f"), filter) })}>
            {valueName(field, value)}
          </button>
        );
      },
    },
    ...data.steps.map((step, index): Column<FunnelRow> => ({ name: `${index + 1}. ${step.name}`, value: ({ steps }) => steps[index], show: ({ steps }) => count(steps[index]!), isNumber: true })),
    { name: "Rate", value: ({ rate }) => rate, show: ({ rate }) => share(rate), isNumber: true },
  ];
  return (
    <Card title={`By ${name.toLowerCase()}`} lead="The value at the first step." tools={<CsvTool name={`Funnel by ${name}`} columns={columns} rows={rows} />}>
      {rows.length ? <Table caption={`By ${name.toLowerCase()}`} columns={columns} rows={rows} truncated={data.truncated} /> : <State title="No data in this period" />}
    </Card>
  );
}
