import { url } from "../api/client";
import type { Retention } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { count, longDay, month, roundShare } from "../lib/format";
import { setQuery } from "../lib/router";
import { Answered, Card, State, Tabs } from "../parts/Card";
import { CsvTool, type Column } from "../parts/Table";
import layout from "./layout.module.css";
import css from "./Retention.module.css";

const INTERVALS: [Retention["interval"], string][] = [
  ["week", "Weeks"],
  ["month", "Months"],
];
const COHORTS = 12;
/** The strongest cell colour on which text stays readable. */
const STRONGEST = 45;

export function RetentionPage() {
  const { project, query } = useScene();
  const interval = query.get("interval") === "month" ? "month" : "week";
  const answer = useAnswer<Retention>(url(`/projects/${project}/analytics/retention`, { interval, cohorts: COHORTS }), undefined, interval);
  const columns: Column<Retention["cohorts"][number]>[] = [
    { name: "cohort", value: ({ cohort }) => cohort },
    ...Array.from({ length: COHORTS }, (_, offset): Column<Retention["cohorts"][number]> => ({ name: `${interval} ${offset}`, value: ({ returned }) => returned[offset] })),
  ];
  const tools = (
    <>
      <Tabs label="Interval" options={INTERVALS} value={interval} onSelect={(id) => setQuery({ interval: id === "week" ? null : id }, true)} />
      <CsvTool name="Retention" columns={columns} rows={answer.data?.cohorts} />
    </>
  );
  const lead = `People by the ${interval} of their first event, and how many came back in each later ${interval}. Visitors without an ID are left out, because headcount can't recognize them on another day.`;
  return (
    <div class={layout.stack}>
      <Card title="Cohorts" lead={lead} tools={tools} isStale={answer.isStale}>
        <Answered answer={answer} height={420}>
          {({ cohorts }) => {
            // Empty cohorts before the first one with people are not shown.
            const seen = cohorts.slice(0, cohorts.findLastIndex(({ users }) => users) + 1);
            return seen.length ? <Grid cohorts={seen} interval={interval} /> : <State title="No people with an ID yet" />;
          }}
        </Answered>
      </Card>
    </div>
  );
}

function Grid({ cohorts, interval }: { cohorts: Retention["cohorts"]; interval: Retention["interval"] }) {
  const width = Math.max(...cohorts.map(({ returned }) => returned.length));
  // The first column is always 100%.
  const most = Math.max(...cohorts.flatMap(({ users, returned }) => returned.slice(1).map((back) => (users ? back / users : 0))), 0.01);
  return (
    <>
      <div class={css.scroll} tabIndex={0} role="group" aria-label="Cohorts">
        <table class={css.grid}>
          <thead>
            <tr>
              <th scope="col" class={css.first}>First seen</th>
              <th scope="col">People</th>
              {Array.from({ length: width }, (_, offset) => (
                <th key={offset} scope="col">
                  {offset === 0 ? `Same ${interval}` : `+${offset}`}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {cohorts.map(({ cohort, users, returned }) => (
              <tr key={cohort}>
                <th scope="row">{interval === "month" ? month(cohort) : longDay(cohort)}</th>
                <td class={css.users}>{count(users)}</td>
                {returned.map((back, offset) => (
                  <Cell key={offset} {...{ back, users, most, offset, isRunning: offset === returned.length - 1 }} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class={css.legend}>A dashed {interval} is still in progress.</p>
    </>
  );
}

function Cell({ back, users, most, offset, isRunning }: { back: number; users: number; most: number; offset: number; isRunning: boolean }) {
  if (!users) return <td class={css.cell} />;
  const ratio = back / users;
  const strength = offset === 0 ? STRONGEST / 3 : (ratio / most) * STRONGEST;
  return (
    <td class={`${css.cell} ${isRunning ? css.running : ""}`} title={`${count(back)} of ${count(users)}`} style={{ backgroundColor: `color-mix(in srgb, var(--accent) ${strength.toFixed(1)}%, var(--surface))` }}>
      {roundShare(ratio)}
    </td>
  );
}
