import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./Icon";
import css from "./Dialog.module.css";

export function Dialog({ title, isNarrow, onClose, children }: { title: string; isNarrow?: boolean; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => before?.focus?.();
  }, []);
  const onBackdrop = (event: MouseEvent) => event.target === dialog.current && onClose();
  return (
    <dialog ref={dialog} class={`${css.dialog} ${isNarrow ? css.narrow : ""}`} aria-label={title} onClose={onClose} onClick={onBackdrop}>
      <div class={css.inner}>
        <div class={css.head}>
          <h2>{title}</h2>
          <button type="button" class={css.close} aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        <div class={css.body}>{children}</div>
      </div>
    </dialog>
  );
}
