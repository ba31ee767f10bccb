// Forms and buttons that change something.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Refusal } from "../api/client";
import { buttons } from "./Card";
import { Dialog } from "./Dialog";
import { FormError, form } from "./Form";

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
        <div class={form.actions}>
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
