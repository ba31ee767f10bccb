import { useState } from "preact/hooks";
import { url } from "../api/client";
import type { Attribution, LtvCohorts, RevenueMetrics, RevenueSeries } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { brief, briefMoney, count, counted, dayName, dayRange, money, month, tick } from "../lib/format";
import { formerOf, windowOf } from "../lib/period";
import { setQuery } from "../lib/router";
import { Chart } from "../chart/Chart";
import { useAnnotated } from "../parts/Annotations";
import { Answered, Card, Stale, State, Tabs, Tool } from "../parts/Card";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Tiles, type Tile } from "../parts/Tiles";
import { Unconverted } from "../parts/Unconverted";
import { WhyDialog, type Why } from "../parts/Why";
import layout from "./layout.module.css";
import overview from "./Overview.module.css";
import css from "./Revenue.module.css";

const MODELS: [string, string][] = [
  ["first_touch", "First touch"],
  ["last_touch", "Last touch"],
];
const LEVELS: [string, string][] = [
  ["account", "account"],
  ["identity", "person"],
];
const DIMENSIONS: [string, string][] = [
  ["source", "Source"],
  ["medium", "Medium"],
  ["campaign", "Campaign"],
];
const ROWS = 8;
/** The most bars in the chart. */
const MOST_BARS = 120;

export function Revenue() {
  return (
    <div class={layout.stack}>
      <Figures />
      <Matrix />
      <Ltv />
    </div>
  );
}

function Figures() {
  const { project, query, today, session } = useScene();
  const window = windowOf(query, today);
  const { start_date, end_date } = window;
  const [isTable, setTable] = useState(false);
  const annotated = useAnnotated(window);
  const isRunning = start_date === today;
  const former = isRunning ? null : formerOf(query, window);
  const now = useAnswer<RevenueMetrics>(url(`/projects/${project}/revenue/metrics`, { start_date, end_date }), undefined, project);
  const before = useAnswer<RevenueMetrics>(former && url(`/projects/${project}/revenue/metrics`, { ...former }), undefined, project);
  const series = useAnswer<RevenueSeries>(url(`/projects/${project}/revenue/timeseries`, { start_date, end_date }), undefined, project);
  const columns: Column<RevenueSeries["series"][number]>[] = [
    { name: "Day", value: ({ day }) => day, show: ({ day }) => dayName(day) },
    { name: "Revenue", value: ({ revenue }) => revenue, show: ({ revenue }) => money(revenue, series.data?.currency ?? "USD"), isNumber: true },
    { name: "Orders", value: ({ orders }) => orders, isNumber: true },
  ];
  const rows = series.data && summed(fromFirst(series.data.series));
  return (
    <div>
      {now.data && <Unconverted money={now.data.unconverted} currency={now.data.currency} />}
      <Card title="Revenue" isBare>
        <Answered answer={now} height={380}>
          {(metrics) => (
            <>
              <Tiles tiles={tilesOf(metrics, before.data, session.share)} isRunning={isRunning} against={former ? dayRange(former.start_date, former.end_date) : undefined} />
              <div class={overview.bar}>
                <span class={overview.range}>
                  {dayRange(start_date, end_date)}, in {metrics.currency}. Refunds are subtracted.
                </span>
                {now.isStale && <Stale />}
                <div class={overview.right}>
                  <Tool icon={isTable ? "chart" : "table"} label={isTable ? "Show the chart" : "Show the table"} pressed={isTable} onClick={() => setTable(!isTable)} />
                  {annotated.tool}
                  <CsvTool name="Revenue" columns={columns} rows={series.data?.series} />
                </div>
              </div>
              <Answered answer={series} height={250}>
                {({ series, currency }) =>
                  isTable ? (
                    <Table caption="Revenue by day" columns={columns} rows={fromFirst(series).toReversed()} />
                  ) : (
                    <Chart
                      label="Revenue by day"
                      kind="bars"
                      {...annotated.marksOf(rows!.map(({ day }) => day), rows!.length === fromFirst(series).length)}
                      points={rows!.map(({ name, day, revenue }) => ({ name, tick: tick(day, "day", ""), value: revenue, complete: day !== today }))}
                      format={(value) => money(value, currency)}
                      axis={(value) => briefMoney(value, currency).replace(/\.00$/, "")}
                    />
                  )
                }
              </Answered>
              {annotated.dialog}
            </>
          )}
        </Answered>
      </Card>
    </div>
  );
}

function tilesOf(now: RevenueMetrics, before: RevenueMetrics | undefined, isShare: boolean): Tile[] {
  const amount = (value: number) => briefMoney(value, now.currency);
  // This page ignores filters. Events may contain names, so shares don't show them.
  const why = (figure: Why["figure"], lead?: string) => (isShare ? undefined : { figure, lead, isUnfiltered: true });
  const divided = (by: string) => `This revenue is divided by the number of ${by}. Each row is an order or a refund. Refunds are subtracted.`;
  return [
    { id: "total_revenue", name: "Revenue", value: amount(now.total_revenue), now: now.total_revenue, before: before?.total_revenue, why: why("revenue") },
    { id: "orders", name: "Orders", value: brief(now.orders), now: now.orders, before: before?.orders, why: why("orders") },
    { id: "aov", name: "Average order value", value: amount(now.aov), now: now.aov, before: before?.aov, why: why("revenue", divided("orders")) },
    { id: "arpa", name: "Revenue per account", value: amount(now.arpa), now: now.arpa, before: before?.arpa, why: why("revenue", divided("active accounts")) },
    { id: "arpu", name: "Revenue per person", value: amount(now.arpu), now: now.arpu, before: before?.arpu, why: why("revenue", divided("active people")) },
  ];
}

type RevenueDay = RevenueSeries["series"][number];

function fromFirst(series: RevenueDay[]): RevenueDay[] {
  const first = series.findIndex(({ revenue, orders }) => revenue || orders);
  return first > 0 && series.length > MOST_BARS * 4 ? series.slice(first) : series;
}

/** Days, or sums of several days if there are more days than bars. */
function summed(series: RevenueDay[]): (RevenueDay & { name: string })[] {
  const days = Math.ceil(series.length / MOST_BARS);
  if (days === 1) return series.map((day) => ({ ...day, name: dayName(day.day) }));
  return Array.from({ length: Math.ceil(series.length / days) }, (_, index) => {
    const some = series.slice(index * days, (index + 1) * days);
    const cents = some.reduce((sum, { revenue }) => sum + Math.round(revenue * 1e6), 0);
    return { day: some[0]!.day, revenue: cents / 1e6, orders: some.reduce((sum, { orders }) => sum + orders, 0), name: dayRange(some[0]!.day, some.at(-1)!.day) };
  });
}

function Matrix() {
  const { query } = useScene();
  const asked = query.get("dimension");
  const dimension = DIMENSIONS.some(([id]) => id === asked) ? asked! : "source";
  return (
    <Card
      title="Revenue attribution"
      lead="Who gets credit for each order: the first or the last source, of the person or of anyone at their company."
      tools={<Tabs label="Dimension" options={DIMENSIONS} value={dimension} onSelect={(id) => setQuery({ dimension: id === "source" ? null : id }, true)} />}
    >
      <div class={css.matrix}>
        {MODELS.flatMap(([model, modelName]) =>
          LEVELS.map(([level, levelName]) => <AttributionBlock key={model + level} {...{ model, level, dimension }} title={`${modelName}, by ${levelName}`} />),
        )}
      </div>
    </Card>
  );
}

function AttributionBlock({ model, level, dimension, title }: { model: string; level: string; dimension: string; title: string }) {
  const { project, query, today, session } = useScene();
  const { start_date, end_date } = windowOf(query, today);
  const [why, setWhy] = useState<Why>();
  const explain = (value: string) => setWhy({ name: `${value}, ${title.toLowerCase()}`, figure: "attribution", touch: { model, level, dimension, value }, isUnfiltered: true });
  const answer = useAnswer<Attribution>(url(`/projects/${project}/revenue/by-attribution`, { model, level, dimension, start_date, end_date, limit: 100 }), undefined, model + level + dimension);
  const columns: Column<Attribution["rows"][number]>[] = [
    { name: dimension, value: (row) => row.dimension },
    { name: "revenue", value: (row) => row.revenue },
    { name: "orders", value: (row) => row.orders },
  ];
  return (
    <section class={css.block} aria-label={title}>
      <div class={overview.bar}>
        <h3>{title}</h3>
        <div class={overview.right}>
          <CsvTool name={title} columns={columns} rows={answer.data?.rows} />
        </div>
      </div>
      <Answered answer={answer} height={260}>
        {({ rows, currency }) => {
          const most = Math.max(...rows.map(({ revenue }) => revenue), 1e-9);
          if (!rows.length) return <State title="No orders in this period" />;
          return (
            <ul>
              {rows.slice(0, ROWS).map(({ dimension, revenue, orders }) => (
                <li key={dimension} class={css.row}>
                  <span>{dimension}</span>
                  {session.share ? (
                    <span class={css.amount} title={counted(orders, "order")}>
                      {briefMoney(revenue, currency)}
                    </span>
                  ) : (
                    <button type="button" class={css.amount} title={counted(orders, "order")} aria-label={`${briefMoney(revenue, currency)}: why this number?`} onClick={() => explain(dimension)}>
                      {briefMoney(revenue, currency)}
                    </button>
                  )}
                  <span class={css.meter}>
                    <i style={{ width: `${Math.max(0, (revenue / most) * 100)}%` }} />
                  </span>
                </li>
              ))}
            </ul>
          );
        }}
      </Answered>
      {why && <WhyDialog why={why} onClose={() => setWhy(undefined)} />}
    </section>
  );
}

function Ltv() {
  const { project, query } = useScene();
  const level = query.get("level") === "identity" ? "identity" : "account";
  const answer = useAnswer<LtvCohorts>(url(`/projects/${project}/revenue/ltv-cohorts`, { level }), undefined, level);
  const currency = answer.data?.currency ?? "USD";
  const who = level === "account" ? "Accounts" : "People";
  const columns: Column<LtvCohorts["cohorts"][number]>[] = [
    { name: "First seen", value: ({ cohort }) => cohort, show: ({ cohort }) => month(cohort) },
    { name: who, value: ({ entities }) => entities, show: ({ entities }) => count(entities), isNumber: true },
    { name: "Orders", value: ({ orders }) => orders, show: ({ orders }) => count(orders), isNumber: true },
    { name: "Revenue", value: ({ revenue }) => revenue, show: ({ revenue }) => money(revenue, currency), isNumber: true },
    { name: "Lifetime value", value: ({ ltv }) => ltv, show: ({ ltv }) => <strong>{money(ltv, currency)}</strong>, isNumber: true },
  ];
  const tools = (
    <>
      <Tabs label="Level" options={[["account", "Accounts"], ["identity", "People"]]} value={level} onSelect={(id) => setQuery({ level: id === "account" ? null : id }, true)} />
      <CsvTool name={`Lifetime value ${who}`} columns={columns} rows={answer.data?.cohorts} />
    </>
  );
  return (
    <Card title="Lifetime value" lead={`All revenue to date, by the month in which ${who.toLowerCase()} were first seen. The period above doesn't apply.`} tools={tools} isStale={answer.isStale}>
      <Answered answer={answer}>
        {({ cohorts, truncated }) => (cohorts.length ? <Table caption="Lifetime value" columns={columns} rows={cohorts} truncated={truncated} /> : <State title={`No ${who.toLowerCase()} yet`} />)}
      </Answered>
    </Card>
  );
}
