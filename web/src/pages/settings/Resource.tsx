// A list of resources, with forms to create and remove them.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useAnswer } from "../../api/use";
import { Confirm } from "../../parts/Action";
import { Answered, Card, State, buttons } from "../../parts/Card";
import { form } from "../../parts/Form";
import { Table, type Column } from "../../parts/Table";
import css from "../Settings.module.css";

interface ResourceProps<R> {
  title: string;
  lead?: string;
  path: string;
  list: string;
  columns: Column<R>[];
  empty: string;
  /** The action that removes a row, and the warning before it. */
  remove?: { verb: string; warning: (row: R) => string; run: (row: R) => Promise<unknown> };
  /** A dialog that changes a row. */
  edit?: (row: R, close: () => void) => ComponentChildren;
  children?: ComponentChildren;
}

export function Resource<R>({ title, lead, path, list, columns, empty, remove, edit, children }: ResourceProps<R>) {
  const answer = useAnswer<Record<string, R[]> & { truncated?: boolean }>(path);
  const [removed, setRemoved] = useState<R | null>(null);
  const [edited, setEdited] = useState<R | null>(null);
  const action: Column<R> | null = remove
    ? {
        name: "Actions",
        isUnnamed: true,
        value: () => "",
        show: (row) => (
          <div class={form.actions}>
            {edit && (
              <button type="button" class={buttons.plain} onClick={() => setEdited(row)}>
                Edit
              </button>
            )}
            <button type="button" class={buttons.danger} onClick={() => setRemoved(row)}>
              {remove.verb}
            </button>
          </div>
        ),
        isNumber: true,
      }
    : null;
  const shown = action ? [...columns, action] : columns;
  return (
    <Card title={title} lead={lead} isStale={answer.isStale}>
      <Answered answer={answer} height={160}>
        {(data) => {
          const rows = (data as Record<string, R[]>)[list] ?? [];
          return rows.length ? <Table caption={title} columns={shown} rows={rows} truncated={!!data.truncated} /> : <State title={empty} />;
        }}
      </Answered>
      {children && <div class={css.create}>{children}</div>}
      {edited && edit?.(edited, () => setEdited(null))}
      {removed && remove && (
        <Confirm
          title={remove.verb}
          text={remove.warning(removed)}
          onClose={() => setRemoved(null)}
          run={() => remove.run(removed)}
        />
      )}
    </Card>
  );
}
