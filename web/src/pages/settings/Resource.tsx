// A list of resources, with forms to create and remove them.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Refusal } from "../../api/client";
import { useAnswer } from "../../api/use";
import { Answered, Card, State, buttons } from "../../parts/Card";
import { Dialog } from "../../parts/Dialog";
import { FormError, form } from "../../parts/Form";
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
  children?: (again: () => void) => ComponentChildren;
}

export function Resource<R>({ title, lead, path, list, columns, empty, remove, children }: ResourceProps<R>) {
  const answer = useAnswer<Record<string, R[]> & { truncated?: boolean }>(path);
  const [removed, setRemoved] = useState<R | null>(null);
  const action: Column<R> | null = remove
    ? {
        name: "Actions",
        isUnnamed: true,
        value: () => "",
        show: (row) => (
          <div class={css.actions}>
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
      {children && <div class={css.create}>{children(answer.again)}</div>}
      {removed && remove && (
        <Confirm
          title={remove.verb}
          text={remove.warning(removed)}
          onClose={() => setRemoved(null)}
          run={async () => {
            await remove.run(removed);
            answer.again();
          }}
        />
      )}
    </Card>
  );
}

export function Confirm({ title, text, run, onClose }: { title: string; text: string; run: () => Promise<unknown>; onClose: () => void }) {
  const act = useAction(async () => {
    await run();
    onClose();
  });
  return (
    <Dialog title={`${title}?`} isNarrow onClose={onClose}>
      <div class={form.form}>
        <p>{text}</p>
        <FormError>{act.error}</FormError>
        <div class={css.actions}>
          <button type="button" class={buttons.plain} onClick={onClose}>
            Cancel
          </button>
          <button type="button" class={buttons.danger} disabled={act.isBusy} onClick={() => act.run()}>
            {title}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/** An action that runs once at a time, and its last error. */
export function useAction<A extends unknown[]>(act: (...args: A) => Promise<unknown>) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const run = async (...args: A) => {
    setBusy(true);
    setError(undefined);
    try {
      await act(...args);
    } catch (error) {
      setError((error as Refusal).message);
    }
    setBusy(false);
  };
  return { run, isBusy, error };
}

interface CreateProps {
  verb: string;
  action: { isBusy: boolean; error?: string };
  onSubmit: () => void;
  children: ComponentChildren;
}

export function Create({ verb, action, onSubmit, children }: CreateProps) {
  const submit = (event: Event) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form class={form.form} onSubmit={submit}>
      {children}
      <FormError>{action.error}</FormError>
      <div>
        <button type="submit" class={buttons.primary} disabled={action.isBusy}>
          {verb}
        </button>
      </div>
    </form>
  );
}
