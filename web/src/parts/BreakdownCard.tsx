// A list of the values of a field, with figures for each.

import { useState } from "preact/hooks";
import type { Breakdown, BreakdownFigures, BreakdownRow } from "../api/types";
import { useAnswer } from "../api/use";
import { mayDefine, readsMoney, useScene } from "../context";
import { toggled, valueFilter } from "../lib/filters";
import { choiceOf } from "../lib/people";
import { brief, briefMoney, count, money, roundShare, valueName } from "../lib/format";
import { kept, windowOf, type Days } from "../lib/period";
import { setQuery } from "../lib/router";
import { useDelayed } from "../lib/delayed";
import { Answered, Card, State, Tabs, Tool } from "./Card";
import { Dialog } from "./Dialog";
import { Search } from "./Form";
import { GoalOfRow, canBeGoal } from "./GoalDialog";
import { CsvTool, Table, type Column } from "./Table";
import css from "./BreakdownCard.module.css";

export type BreakdownFigure = keyof BreakdownFigures;

export interface Dimension {
  id: string;
  name: string;
  field: string;
  figure: BreakdownFigure;
  /** Counts only events with this name. */
  event?: string;
  /** Shows revenue beside the figure, instead of its share. */
  showsMoney?: boolean;
  /** The label of events without the field. By default they are left out. */
  none?: string;
}

export const FIGURE_NAMES: Record<BreakdownFigure, string> = {
  unique_users: "Visitors",
  sessions: "Sessions",
  pageviews: "Pageviews",
  events: "Events",
  revenue: "Revenue",
  orders: "Orders",
};

/** A name within a sentence: lower case, except for abbreviations. */
const inText = (name: string) => (name === name.toUpperCase() ? name : name.toLowerCase());

const SHORT = 9;
const LONG = 250;

interface Asked {
  limit: number;
  search?: string;
  order_by?: string;
  window?: Days;
}

export function useBreakdown({ field, figure, event: event_name }: Dimension, { limit, search, order_by = figure, window }: Asked) {
  const { project, query, today, floor } = useScene();
  const days = window ?? kept(windowOf(query, today), floor);
  const body = { start_date: days?.start_date, end_date: days?.end_date, ...choiceOf(query), dimension: field, order_by, limit, ...(event_name && { event_name }), ...(search && { search }) };
  return useAnswer<Breakdown>(days && `/projects/${project}/analytics/breakdown`, body, `${field} ${event_name ?? ""}`);
}

interface BreakdownCardProps {
  title: string;
  dimensions: Dimension[];
}

export function BreakdownCard({ title, dimensions }: BreakdownCardProps) {
  const { query } = useScene();
  const name = `tab_${title.toLowerCase()}`;
  const chosen = dimensions.find(({ id }) => id === query.get(name)) ?? dimensions[0]!;
  const [isOpen, setOpen] = useState(false);
  const answer = useBreakdown(chosen, { limit: SHORT + 1 });
  const rows = answer.data && listed(answer.data, chosen);
  const tabs =
    dimensions.length > 1 ? (
      <Tabs label={title} options={dimensions.map(({ id, name }) => [id, name])} value={chosen.id} onSelect={(id) => setQuery({ [name]: id === dimensions[0]!.id ? null : id }, true)} />
    ) : undefined;
  const tools = (
    <>
      <CsvTool name={`${title} ${chosen.name}`} columns={columnsOf(chosen, answer.data)} rows={rows} />
      <Tool icon="expand" label={`Show all ${inText(chosen.name)}`} onClick={() => setOpen(true)} />
    </>
  );
  return (
    <Card title={title} tabs={tabs} tools={tools} isStale={answer.isStale} isBusy={answer.isLoading}>
      <div class={css.body}>
        <Answered answer={answer} height={300}>
          {(data) => (rows!.length ? <Rows dimension={chosen} rows={rows!.slice(0, SHORT)} data={data} onMore={() => setOpen(true)} /> : <State title="No data in this period" />)}
        </Answered>
      </div>
      {isOpen && <BreakdownDialog title={`${title}: ${inText(chosen.name)}`} dimension={chosen} onClose={() => setOpen(false)} />}
    </Card>
  );
}

/** The first rows, for a window other than the page's period. */
export function BreakdownRows({ dimension, window }: { dimension: Dimension; window: Days }) {
  const answer = useBreakdown(dimension, { limit: SHORT, window });
  return (
    <Answered answer={answer} height={260}>
      {(data) => {
        const rows = listed(data, dimension);
        return rows.length ? <Rows dimension={dimension} rows={rows} data={data} /> : <State title="No data yet today" />;
      }}
    </Answered>
  );
}

/** The rows with a nonzero figure. Events without the field need a name in the dimension. */
export function listed({ rows }: Breakdown, { none, figure }: Dimension): BreakdownRow[] {
  return rows.filter((row) => row[figure] && (row.value !== null || none));
}

export function rowName({ field, none }: Dimension, { value }: BreakdownRow): string {
  return value === null && none ? none : valueName(field, value);
}

export function Rows({ dimension, rows, data, onMore }: { dimension: Dimension; rows: BreakdownRow[]; data: Breakdown; onMore?: () => void }) {
  const { session } = useScene();
  const { figure, showsMoney } = dimension;
  const hasMoney = showsMoney && readsMoney(session) && rows.some(({ revenue }) => revenue);
  const most = Math.max(...rows.map((row) => row[figure] ?? 0), 1);
  const sum = rows.reduce((sum, row) => sum + (row[figure] ?? 0), 0);
  const look = hasMoney ? css.money : "";
  const rest = data.total_rows - rows.length;
  return (
    <>
      <div class={`${css.head} ${look}`} aria-hidden="true">
        <span>{dimension.name}</span>
        <span>{FIGURE_NAMES[figure]}</span>
        <span>{hasMoney ? "Revenue" : "Share"}</span>
      </div>
      <ul class={css.list}>
        {rows.map((row) => (
          <li key={JSON.stringify(row.value)} class={`${css.row} ${look}`}>
            <div class={css.cell}>
              <span class={css.fill} style={{ width: `${((row[figure] ?? 0) / most) * 100}%` }} />
              <RowName dimension={dimension} row={row} />
              {canBeGoal(dimension.field) && (
                <span class={css.act}>
                  <GoalOfRow field={dimension.field} value={row.value} />
                </span>
              )}
            </div>
            <span class={css.figure} title={`${FIGURE_NAMES[figure]}: ${count(row[figure] ?? 0)}`}>
              {brief(row[figure] ?? 0)}
            </span>
            <span class={`${css.figure} ${css.part}`}>{hasMoney ? briefMoney(row.revenue ?? 0, data.currency ?? "USD") : roundShare((row[figure] ?? 0) / (sum || 1))}</span>
          </li>
        ))}
      </ul>
      <div class={css.foot}>
        {onMore && (rest > 0 || data.truncated) && (
          <button type="button" class={css.more} onClick={onMore}>
            Show all {count(data.total_rows)}
          </button>
        )}
      </div>
    </>
  );
}

function RowName({ dimension, row }: { dimension: Dimension; row: BreakdownRow }) {
  const { query } = useScene();
  const filters = query.getAll("f");
  const name = rowName(dimension, row);
  const filter = valueFilter(dimension.field, row.value);
  const isOn = filters.includes(filter);
  return (
    <button
      type="button"
      class={`${css.name} ${row.value === null ? css.none : ""}`}
      data-on={isOn}
      title={isOn ? `Remove the filter on ${name}` : `Filter by ${name}`}
      onClick={() => setQuery({ f: toggled(filters, filter) })}
    >
      {name}
    </button>
  );
}

export function columnsOf(dimension: Dimension, data: Breakdown | undefined, pick?: (row: BreakdownRow) => void): Column<BreakdownRow>[] {
  const figures = (Object.keys(FIGURE_NAMES) as BreakdownFigure[]).filter((figure) => data?.rows[0]?.[figure] !== undefined);
  const first: Column<BreakdownRow> = {
    name: dimension.name,
    value: (row) => row.value ?? dimension.none ?? "",
    show: (row) => (
      <button type="button" class={css.pick} onClick={() => pick?.(row)}>
        {rowName(dimension, row)}
      </button>
    ),
  };
  const others = figures.map((figure): Column<BreakdownRow> => ({
    name: FIGURE_NAMES[figure],
    value: (row) => row[figure],
    show: (row) => (figure === "revenue" ? money(row.revenue ?? 0, data?.currency ?? "USD") : count(row[figure] ?? 0)),
    isNumber: true,
    sort: figure,
  }));
  return [first, ...others];
}

export function BreakdownDialog({ title, dimension, onClose }: { title: string; dimension: Dimension; onClose: () => void }) {
  const { query, session } = useScene();
  const [text, setText] = useState("");
  const [sorted, setSorted] = useState<string>(dimension.figure);
  const search = useDelayed(text);
  const answer = useBreakdown(dimension, { limit: LONG, search, order_by: sorted });
  const pick = ({ value }: BreakdownRow) => {
    setQuery({ f: toggled(query.getAll("f"), valueFilter(dimension.field, value)) });
    onClose();
  };
  const columns = columnsOf(dimension, answer.data, pick);
  const act: Column<BreakdownRow> = { name: "Actions", isUnnamed: true, value: () => "", show: ({ value }) => <GoalOfRow field={dimension.field} value={value} />, isNumber: true };
  return (
    <Dialog title={title} onClose={onClose}>
      <div class={css.tools}>
        <Search label={`Search ${inText(dimension.name)}`} value={text} onText={setText} />
        <CsvTool name={title} columns={columns} rows={answer.data?.rows} />
      </div>
      <Answered answer={answer} height={320}>
        {(data) =>
          data.rows.length ? (
            <Table caption={title} columns={canBeGoal(dimension.field) && mayDefine(session) ? [...columns, act] : columns} rows={data.rows} sorted={sorted} onSort={setSorted} truncated={data.truncated} />
          ) : (
            <State title="No matches" />
          )
        }
      </Answered>
    </Dialog>
  );
}

