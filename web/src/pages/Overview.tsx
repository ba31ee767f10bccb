import { useState } from "preact/hooks";
import type { Bucket, Figures, Intake, Interval, Report } from "../api/types";
import { useAnswer, type Answer } from "../api/use";
import { readsMoney, useScene } from "../context";
import { brief, briefMoney, bucketName, count, dayRange, duration, money, share, tick } from "../lib/format";
import { choiceOf, isChosen } from "../lib/people";
import { compareOf, floorIn, formerOf, intervalOf, intervals, kept, windowOf, type Window } from "../lib/period";
import { setQuery } from "../lib/router";
import { Chart, type Point } from "../chart/Chart";
import { useAnnotated } from "../parts/Annotations";
import { BreakdownCard, type Dimension } from "../parts/BreakdownCard";
import { Answered, Card, Stale, State, Tabs, Tool } from "../parts/Card";
import { FilterChips } from "../parts/Filters";
import { Gone, Kept } from "../parts/Kept";
import { Lazy } from "../parts/Lazy";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Tiles, type Tile } from "../parts/Tiles";
import { Unconverted } from "../parts/Unconverted";
import { EventsCard } from "./EventsCard";
import { FirstSteps } from "./FirstSteps";
import { GoalsCard } from "./GoalsCard";
import { DEVICES, LOCATIONS, PAGES_OF_SITE, SOURCES } from "./dimensions";
import css from "./Overview.module.css";

export type Figure = Exclude<keyof Figures, "orders">;

interface Shown {
  name: string;
  show: (value: number, currency: string) => string;
  long: (value: number, currency: string) => string;
  /** Why buckets don't add up to the total. */
  note?: string;
  isInverse?: boolean;
  /** The explanation. Figures that count every event need none. */
  why?: Tile["why"];
}

/** `interval` stands for the name of the interval. */
const UNION = "Visitors seen in more than one interval count once in the total.";

const FIGURES: Record<Figure, Shown> = {
  unique_users: { name: "Visitors", show: brief, long: count, note: UNION, why: { figure: "unique_users" } },
  sessions: { name: "Sessions", show: brief, long: count, why: { figure: "sessions" } },
  pageviews: { name: "Pageviews", show: brief, long: count },
  events: { name: "Events", show: brief, long: count },
  bounce_rate: { name: "Bounce rate", show: share, long: share, isInverse: true, why: { figure: "sessions", lead: "The bounce rate is the share of these sessions with a single interactive event. Each row is a session's first event." } },
  duration_avg_sec: { name: "Session duration", show: duration, long: duration, why: { figure: "sessions", lead: "The session duration is the average over these sessions. Each row is a session's first event." } },
  revenue: { name: "Revenue", show: briefMoney, long: money, why: { figure: "revenue" } },
};

const CARDS: [string, Dimension[]][] = [
  ["Acquisition", SOURCES],
  ["Content", PAGES_OF_SITE],
  ["Locations", LOCATIONS],
  ["Devices", DEVICES],
];

const TILES: Figure[] = ["unique_users", "sessions", "pageviews", "bounce_rate", "duration_avg_sec"];

const INTERVALS: Record<Interval, string> = { hour: "Hours", day: "Days", week: "Weeks", month: "Months" };

interface Reported {
  answer: Answer<Report>;
  /** The window shown, or null if its events are no longer stored. */
  window: Window | null;
  /** The period begins before the first day with stored events. */
  isCut: boolean;
  /** The days to compare with have no stored events. */
  isFormerGone: boolean;
}

/** Asks for the report. With filters or hours, it covers only days with stored events. */
function useReport(): Reported {
  const { project, query, today, floor } = useScene();
  const choice = choiceOf(query);
  const asked = windowOf(query, today);
  const window = isChosen(choice) ? kept(asked, floor) : asked;
  const interval = window && intervalOf(query, window, floor);
  const former = window && formerOf(query, window);
  const isFormerGone = !!former && (isChosen(choice) || interval === "hour") && floorIn(former, floor) !== null;
  const compare = former && !isFormerGone ? compareOf(query) : null;
  const body = { start_date: window?.start_date, end_date: window?.end_date, interval, compare, ...choice };
  const answer = useAnswer<Report>(window && `/projects/${project}/analytics/report`, body, project);
  return { answer, window, isCut: window !== asked, isFormerGone };
}

export function Overview() {
  const { project, query, session, today, floor } = useScene();
  const reported = useReport();
  const { answer, window, isCut } = reported;
  const asked = windowOf(query, today);
  const isEmpty = answer.data?.totals.events === 0 && !isChosen(choiceOf(query));
  const intake = useAnswer<Intake>(isEmpty && !session.share ? `/projects/${project}/intake` : null);
  if (isEmpty && intake.data && intake.data.last_event_at === null) return <FirstSteps onEvents={answer.again} />;
  return (
    <>
      <FilterChips />
      {answer.data?.unconverted && <Unconverted money={answer.data.unconverted} currency={answer.data.currency!} />}
      {window && <Main {...reported} window={window} />}
      <div class={css.grid}>{kept(asked, floor) ? <Lists since={isCut ? null : floorIn(asked, floor)} /> : <NoLists />}</div>
    </>
  );
}

function NoLists() {
  return (
    <Card title="Lists" isBare class={css.wide}>
      <Gone />
    </Card>
  );
}

/** The cards that are computed from stored events. */
function Lists({ since }: { since: string | null }) {
  return (
    <>
      {since && (
        <div class={css.wide}>
          <Kept since={since} and=", so the lists below begin on that day" />
        </div>
      )}
      {CARDS.map(([title, dimensions]) => (
        <Lazy key={title} height={410} class={css.card}>
          <BreakdownCard title={title} dimensions={dimensions} />
        </Lazy>
      ))}
      <Lazy height={220} class={css.wide}>
        <GoalsCard />
      </Lazy>
      <Lazy height={360} class={css.wide}>
        <EventsCard />
      </Lazy>
    </>
  );
}

function tilesOf({ totals, previous, currency = "" }: Report, hasMoney: boolean, isShare: boolean): Tile[] {
  const figures: Figure[] = [...TILES, hasMoney ? "revenue" : "events"];
  return figures.map((id) => ({
    id,
    name: FIGURES[id].name,
    value: FIGURES[id].show(totals[id] ?? 0, currency),
    now: totals[id],
    before: previous?.totals[id],
    isInverse: FIGURES[id].isInverse,
    // Events may contain names.
    why: isShare ? undefined : FIGURES[id].why,
  }));
}

function Main({ answer, window, isCut, isFormerGone }: Reported & { window: Window }) {
  const { session, query, today, floor } = useScene();
  const [isTable, setTable] = useState(false);
  const annotated = useAnnotated(window);
  const hasMoney = readsMoney(session);
  const asked = query.get("figure") as Figure | null;
  const figure: Figure = asked && asked in FIGURES && (asked !== "revenue" || hasMoney) ? asked : "unique_users";
  const suited = intervals(window, floor);
  const report = answer.data;
  const previous = report?.previous;
  const against = previous ? dayRange(previous.start_date, previous.end_date) : undefined;
  const columns = report ? columnsOf(report) : [];
  const buckets = report ? withoutLeadingNothing(report, window.period) : [];
  return (
    <Card title="Figures" isBare isBusy={answer.isLoading}>
      <Answered answer={answer} height={380}>
        {(report) => (
          <>
            <Tiles tiles={tilesOf(report, hasMoney, session.share)} isRunning={window.start_date === today} selected={figure} against={against} onSelect={(id) => setQuery({ figure: id === "unique_users" ? null : id }, true)} />
            <div class={css.bar}>
              <span class={css.range}>
                {dayRange(report.start_date, report.end_date)}
                {against && `, compared with ${against}`}
              </span>
              {answer.isStale && <Stale />}
              <div class={css.right}>
                {suited.length > 1 && (
                  <Tabs
                    label="Interval"
                    options={suited.map((id) => [id, INTERVALS[id]])}
                    value={report.interval}
                    onSelect={(id) => setQuery({ interval: id === suited[0] ? null : id }, true)}
                  />
                )}
                <Tool icon={isTable ? "chart" : "table"} label={isTable ? "Show the chart" : "Show the table"} pressed={isTable} onClick={() => setTable(!isTable)} />
                {report.interval !== "hour" && annotated.tool}
                <CsvTool name="Figures" columns={columns} rows={buckets} />
              </div>
            </div>
            <Kept since={isCut || isFormerGone ? floor : null} and={isFormerGone ? ", so there is nothing to compare with" : ""} />
            {isTable ? (
              <Table caption="Figures" columns={columns} rows={buckets.toReversed()} />
            ) : buckets.some((bucket) => bucket.events) || previous ? (
              <FigureChart report={report} buckets={buckets} figure={figure} marksOf={annotated.marksOf} />
            ) : (
              <State title="No data in this period">
                <p>Choose another period or remove filters.</p>
              </State>
            )}
            {annotated.dialog}
          </>
        )}
      </Answered>
    </Card>
  );
}

/** Makes the longest period begin with the first event. */
function withoutLeadingNothing({ series }: Report, period: string): Bucket[] {
  const first = series.findIndex(({ events }) => events > 0);
  return period === "all" && first > 0 ? series.slice(first) : series;
}

interface FigureChartProps {
  report: Report;
  buckets: Bucket[];
  figure: Figure;
  marksOf: ReturnType<typeof useAnnotated>["marksOf"];
}

function FigureChart({ report, buckets, figure, marksOf }: FigureChartProps) {
  const { timezone } = useScene();
  const { interval, previous, currency = "" } = report;
  const { name, show, long, note } = FIGURES[figure];
  const now = Date.now();
  const points = buckets.map((bucket, index): Point => {
    const former = previous?.series[index];
    return {
      name: bucketName(bucket.bucket, interval, timezone),
      tick: tick(bucket.bucket, interval, timezone),
      value: bucket[figure] ?? 0,
      complete: bucket.complete,
      isFuture: interval === "hour" && new Date(bucket.bucket).getTime() > now,
      former: former && { name: bucketName(former.bucket, interval, timezone), value: former[figure] ?? 0 },
    };
  });
  return (
    <Chart
      label={`${name} by ${interval}`}
      points={points}
      format={(value) => long(value, currency)}
      axis={(value) => show(value, currency).replace(/\.00$/, "")}
      finest={figure === "bounce_rate" ? 0 : 1}
      {...(interval !== "hour" && marksOf(buckets.map(({ bucket }) => bucket), interval === "day"))}
      note={note?.replace("interval", interval)}
      legend={previous ? { now: name, former: dayRange(previous.start_date, previous.end_date) } : undefined}
    />
  );
}

function columnsOf({ interval, timezone, currency = "", totals, series }: Report): Column<Bucket>[] {
  const last = series.findLast(({ complete }) => complete)?.bucket ?? "";
  const shown = (Object.keys(FIGURES) as Figure[]).filter((figure) => totals[figure] !== undefined);
  return [
    { name: interval === "hour" ? "Hour" : interval === "day" ? "Day" : interval === "week" ? "Week" : "Month", value: ({ bucket }) => bucket, show: ({ bucket, complete }) => `${bucketName(bucket, interval, timezone)}${complete ? "" : bucket < last ? " (partial)" : " (in progress)"}` },
    ...shown.map((figure): Column<Bucket> => ({
      name: FIGURES[figure].name,
      value: (bucket) => bucket[figure],
      show: (bucket) => FIGURES[figure].long(bucket[figure] ?? 0, currency),
      isNumber: true,
    })),
  ];
}
