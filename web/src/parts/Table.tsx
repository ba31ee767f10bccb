import type { ComponentChildren } from "preact";
import { download, type Cell } from "../lib/csv";
import { Tool } from "./Card";
import css from "./Table.module.css";

export interface Column<R> {
  name: string;
  /** The content of the cell. By default, the value. */
  show?: (row: R) => ComponentChildren;
  /** The value in the CSV file. */
  value: (row: R) => Cell;
  isNumber?: boolean;
  sort?: string;
  /** Only screen readers get the name. */
  isUnnamed?: boolean;
}

interface TableProps<R> {
  caption: string;
  columns: Column<R>[];
  rows: R[];
  sorted?: string;
  onSort?: (by: string) => void;
  truncated?: boolean;
}

export function Table<R>({ caption, columns, rows, sorted, onSort, truncated }: TableProps<R>) {
  return (
    <>
      <div class={css.scroll} tabIndex={0} role="group" aria-label={caption}>
        <table class={css.table}>
          <thead>
            <tr>
              {columns.map(({ name, isNumber, sort, isUnnamed }) => (
                <th key={name} scope="col" class={isNumber ? css.number : undefined} aria-sort={sort && sort === sorted ? "descending" : undefined}>
                  {sort && onSort ? (
                    <button type="button" class={css.sort} data-on={sort === sorted} onClick={() => onSort(sort)}>
                      {name}
                      {sort === sorted ? " ↓" : ""}
                    </button>
                  ) : (
                    <span class={isUnnamed ? css.spoken : undefined}>{name}</span>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {columns.map(({ name, show, value, isNumber }, column) => (
                  <td key={name} class={isNumber ? css.number : column === 0 ? css.main : undefined}>
                    {show ? show(row) : value(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {truncated && <p class={css.more}>Only the first {rows.length} are shown.</p>}
    </>
  );
}

/** Saves the rows of a table as a CSV file. */
export function CsvTool<R>({ name, columns, rows }: { name: string; columns: Column<R>[]; rows: R[] | undefined }) {
  const save = () => rows && download(name, [columns.map(({ name }) => name), ...rows.map((row) => columns.map(({ value }) => value(row)))]);
  return <Tool icon="download" label={`Download ${name} as CSV`} onClick={save} />;
}
