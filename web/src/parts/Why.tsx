// Why a figure is what it is: the events that make it up, and those that are not counted.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, type Refusal } from "../api/client";
import type { ExplainedEvent, Explanation } from "../api/types";
import { useScene } from "../context";
import { filtersOf } from "../lib/filters";
import { count, dayRange, moment, money } from "../lib/format";
import { floorIn, kept, windowOf } from "../lib/period";
import { buttons, Failure, State, Tabs, Waiting } from "./Card";
import { Dialog } from "./Dialog";
import { Gone, Kept } from "./Kept";
import { CsvTool, Table, type Column } from "./Table";
import css from "./Why.module.css";

/** What is explained. */
export interface Why {
  /** The figure as the page names it, such as `Bounce rate`. */
  name: string;
  figure: "unique_users" | "sessions" | "revenue" | "orders" | "attribution";
  /** What is said of the rows, if the figure is only made of theirs. */
  lead?: string;
  /** The touches, if the figure is attribution. */
  touch?: { model: string; level: string; dimension: string; value: string };
  /** The page's figures know no filters. */
  isUnfiltered?: boolean;
}

const LEADS: Record<Why["figure"], string> = {
  unique_users: "Each row is the first event of one visitor.",
  sessions: "Each row is the first event of one session.",
  revenue: "Each row is an order, or a refund, which is subtracted.",
  orders: "Each row is one order.",
  attribution: "Each row is an order or a refund of a buyer who came this way.",
};

const REASONS: Record<string, string> = {
  first_of_user: "first event of a visitor",
  first_of_session: "first event of a session",
  order: "an order",
  refund: "a refund",
  touch: "by a visit with a source",
  direct: "no visit had a source",
  no_consent: "recorded without consent",
  no_session: "it is not interactive and belongs to no session",
  began_before: "its session began before these days",
  server_only: "only servers may send money",
  no_rate: "its currency had no rate",
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

/** Asks for the first page, and for one more at a time. */
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
      const body = { figure, start_date, end_date, filters: isUnfiltered ? [] : filtersOf(query), ...touch, limit: PAGE, ...(cursor && { cursor }) };
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
  return (
    <Dialog title={`Why: ${why.name}`} onClose={onClose}>
      {isGone && <Gone />}
      {!shown && !isGone && (error ? <Failure error={error} again={() => load(null)} /> : <Waiting height={320} />)}
      {shown && (
        <>
          <p class={css.lead}>
            <strong data-result>{isMoney ? money(shown.result, shown.currency ?? "USD") : count(shown.result)}</strong> from {dayRange(shown.start_date, shown.end_date)}. {why.lead ?? LEADS[why.figure]}
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
            <CsvTool name={`Why ${why.name} ${list === "rows" ? "counted" : "not counted"}`} columns={columns} rows={rows} />
          </div>
          {rows.length ? (
            <Table caption={list === "rows" ? "Counted events" : "Events that are not counted"} columns={columns} rows={rows} />
          ) : (
            <State title={shown.next ? "None so far" : list === "rows" ? "No event counts" : "Every event counts that could"} />
          )}
          <div class={css.foot} role="status">
            {error && (error.code === "cursor_expired" ? "These events are of a while ago." : error.message)}
            {!error && `${count(rows.length)} ${rows.length === 1 ? "event" : "events"}${shown.next ? " so far" : ""}, the latest first`}
            {(shown.next || error) && (
              <button type="button" class={buttons.plain} disabled={isBusy} onClick={() => load(error?.code === "cursor_expired" ? null : shown.next)}>
                {error?.code === "cursor_expired" ? "Begin again" : error ? "Try again" : "More"}
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
  const counts: Column<ExplainedEvent> = { name: "Counts", value: (row) => row.contributes, show: (row) => (isMoney ? money(row.contributes ?? 0, currency) : count(row.contributes ?? 0)), isNumber: true };
  const sent: Column<ExplainedEvent> = { name: "Sent", value: (row) => row.value, show: (row) => (row.value == null || !row.currency ? "" : money(row.value, row.currency)), isNumber: true };
  return [
    { name: "Event", value: (row) => row.name },
    { name: "Time", value: (row) => row.at, show: (row) => <span class={css.line}>{moment(row.at, timezone)}</span> },
    { name: isCounted ? "Because" : "Reason", value: (row) => row.why, show: (row) => <span class={css.line}>{REASONS[row.why] ?? row.why}</span> },
    { name: "Who", value: (row) => row.identity_id, show: (row) => <code class={css.id}>{row.identity_id?.slice(0, 11) ?? "nobody"}</code> },
    { name: "Id", value: (row) => row.event_id, show: (row) => <code class={css.id} title={row.event_id}>{row.event_id.slice(0, 11)}</code> },
    ...(isMoney || !isCounted ? [sent] : []),
    ...(isCounted ? [counts] : []),
  ];
}
