import type { ComponentChildren } from "preact";
import { Icon } from "./Icon";
import css from "./Filters.module.css";

export function Chips({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <ul class={css.chips} aria-label={label}>
      {children}
    </ul>
  );
}

/** An item of these, with a button that removes it. */
export function Chip({ label, onRemove, children }: { label: string; onRemove: () => void; children: ComponentChildren }) {
  return (
    <li class={css.chip}>
      <span>{children}</span>
      <button type="button" class={css.remove} aria-label={label} onClick={onRemove}>
        <Icon name="close" size={12} />
      </button>
    </li>
  );
}
