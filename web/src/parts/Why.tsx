// Explains a figure: the events that it counts, and the events that it leaves out.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, type Refusal } from "../api/client";
import type { ExplainedEvent, Explanation } from "../api/types";
import { useScene } from "../context";
import { count, counted, dayRange, moment, money, plural } from "../lib/format";
import { choiceOf } from "../lib/people";
import { floorIn, kept, windowOf } from "../lib/period";
import { buttons, Failure, State, Tabs, Waiting } from "./Card";
import { Dialog } from "./Dialog";
import { Gone, Kept } from "./Kept";
import { CsvTool, Table, type Column } from "./Table";
import css from "./Why.module.css";

/** The figure to explain. */
export interface Why {
  /** The name of the figure on the page, such as `Bounce rate`. */
  name: string;
  figure: "unique_users" | "sessions" | "revenue" | "orders" | "attribution";
  /** Describes how the figure follows from the rows. By default they are the figure itself. */
  lead?: string;
  /** The attribution to explain. */
  touch?: { model: string; level: string; dimension: string; value: string };
  /** The page's figures ignore filters. */
  isUnfiltered?: boolean;
}

const LEADS: Record<Why["figure"], string> = {
  unique_users: "Each row is a visitor's first event.",
  sessions: "Each row is a session's first event.",
  revenue: "Each row is an order or a refund. Refunds are subtracted.",
  orders: "Each row is an order.",
  attribution: "Each row is an order or a refund with this attribution. Refunds are subtracted.",
};

const UNITS: Partial<Record<Why["figure"], string>> = { unique_users: "visitor", sessions: "session", orders: "order" };

const REASONS: Record<string, string> = {
  first_of_user: "visitor's first event",
  first_of_session: "session's first event",
  order: "order",
  refund: "refund",
  touch: "attributed to a touch",
  direct: "direct: no touch found",
  no_consent: "no consent",
  no_session: "not interactive, outside any session",
  began_before: "session began before this period",
  server_only: "only revenue from servers counts",
  no_rate: "no exchange rate for the currency",
};

const PAGE = 50;

interface Shown {
  result: number;
  currency?: string;
  rows: ExplainedEvent[];
  not_counted: ExplainedEvent[];
  next: string | null;
  start_date: string;
  end_date: string;
}

/** Loads the first page, then one more at a time. */
function usePages({ figure, touch, isUnfiltered }: Why) {
  const { project, query, today, floor } = useScene();
  const asked = windowOf(query, today);
  const days = kept(asked, floor);
  const [shown, setShown] = useState<Shown>();
  const [error, setError] = useState<Refusal>();
  const [isBusy, setBusy] = useState(false);
  const abort = useRef<AbortController | undefined>(undefined);
  const load = async (cursor: string | null) => {
    if (!days) return;
    const { start_date, end_date } = days;
    abort.current?.abort();
    const own = (abort.current = new AbortController());
    setBusy(true);
    try {
      const body = { figure, start_date, end_date, ...(!isUnfiltered && choiceOf(query)), ...touch, limit: PAGE, ...(cursor && { cursor }) };
      const page = await ask<Explanation>(`/projects/${project}/explain`, body, own.signal);
      setShown((before) => (cursor && before ? { ...page, rows: [...before.rows, ...page.rows], not_counted: [...before.not_counted, ...page.not_counted] } : page));
      setError(undefined);
    } catch (error) {
      if (!own.signal.aborted) setError(error as Refusal);
    }
    if (!own.signal.aborted) setBusy(false);
  };
  useEffect(() => {
    void load(null);
    return () => abort.current?.abort();
  }, []);
  return { shown, error, isBusy, load, isGone: !days, since: floorIn(asked, floor) };
}

export function WhyDialog({ why, onClose }: { why: Why; onClose: () => void }) {
  const { shown, error, isBusy, load, isGone, since } = usePages(why);
  const [list, setList] = useState<"rows" | "not_counted">("rows");
  const isMoney = why.figure === "revenue" || why.figure === "attribution";
  const columns = useColumns(isMoney, list === "rows", shown?.currency);
  const rows = shown?.[list] ?? [];
  const unit = shown && UNITS[why.figure] && plural(shown.result, UNITS[why.figure]!);
  return (
    <Dialog title={`${why.name}: why this number?`} onClose={onClose}>
      {isGone && <Gone />}
      {!shown && !isGone && (error ? <Failure error={error} again={() => load(null)} /> : <Waiting height={320} />)}
      {shown && (
        <>
          <p class={css.lead}>
            <strong data-result>{isMoney ? money(shown.result, shown.currency ?? "USD") : count(shown.result)}</strong> {unit && `${unit} `}from {dayRange(shown.start_date, shown.end_date)}. {why.lead ?? LEADS[why.figure]}
          </p>
          <Kept since={since} />
          <div class={css.bar}>
            <Tabs
              label="Events"
              options={[
                ["rows", "Counted"],
                ["not_counted", "Not counted"],
              ]}
              value={list}
              onSelect={setList}
            />
            <CsvTool name={`${list === "rows" ? "Counted" : "Not counted"} events for ${why.name}`} columns={columns} rows={rows} />
          </div>
          {rows.length ? (
            <Table caption={list === "rows" ? "Counted events" : "Events not counted"} columns={columns} rows={rows} />
          ) : (
            <State title={shown.next ? "None loaded yet" : list === "rows" ? "No events counted" : "No events left out"} />
          )}
          <div class={css.foot} role="status">
            {error && (error.code === "cursor_expired" ? "This list has expired." : error.message)}
            {!error && `${counted(rows.length, "event")}${shown.next ? " loaded" : ""}, latest first`}
            {(shown.next || error) && (
              <button type="button" class={buttons.plain} disabled={isBusy} onClick={() => load(error?.code === "cursor_expired" ? null : shown.next)}>
                {error?.code === "cursor_expired" ? "Reload" : error ? "Try again" : "Load more"}
              </button>
            )}
          </div>
        </>
      )}
    </Dialog>
  );
}

function useColumns(isMoney: boolean, isCounted: boolean, currency = "USD"): Column<ExplainedEvent>[] {
  const { timezone } = useScene();
  const counts: Column<ExplainedEvent> = { name: "Counted", value: (row) => row.contributes, show: (row) => (isMoney ? money(row.contributes ?? 0, currency) : count(row.contributes ?? 0)), isNumber: true };
  const sent: Column<ExplainedEvent> = { name: "Amount sent", value: (row) => row.value, show: (row) => (row.value == null || !row.currency ? "" : money(row.value, row.currency)), isNumber: true };
  return [
    { name: "Event", value: (row) => row.name },
    { name: "Time", value: (row) => row.at, show: (row) => <span class={css.line}>{moment(row.at, timezone)}</span> },
    { name: "Reason", value: (row) => row.why, show: (row) => <span class={css.line}>{REASONS[row.why] ?? row.why}</span> },
    { name: "Person", value: (row) => row.identity_id, show: (row) => <code class={css.id}>{row.identity_id?.slice(0, 11) ?? "none"}</code> },
    { name: "Event ID", value: (row) => row.event_id, show: (row) => <code class={css.id} title={row.event_id}>{row.event_id.slice(0, 11)}</code> },
    ...(isMoney || !isCounted ? [sent] : []),
    ...(isCounted ? [counts] : []),
  ];
}
