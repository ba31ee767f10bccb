import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useId, useState } from "preact/hooks";
import { buttons } from "./Card";
import { Icon } from "./Icon";
import css from "./Form.module.css";

export const form = css as Record<string, string>;

type InputProps = InputHTMLAttributes<HTMLInputElement> & { label: string; hint?: string; onText?: (text: string) => void };

export function Input({ label, hint, onText, ...rest }: InputProps) {
  const id = useId();
  return (
    <div class={css.field}>
      <label class={css.label} for={id}>
        {label}
      </label>
      <input id={id} class={css.input} aria-describedby={hint ? `${id}-hint` : undefined} onInput={(event) => onText?.(event.currentTarget.value)} {...rest} />
      {hint && (
        <span id={`${id}-hint`} class={css.hint}>
          {hint}
        </span>
      )}
    </div>
  );
}

export function Select({ label, value, options, onSelect }: { label: string; value: string; options: [string, string][]; onSelect: (value: string) => void }) {
  const id = useId();
  return (
    <div class={css.field}>
      <label class={css.label} for={id}>
        {label}
      </label>
      <select id={id} class={css.input} value={value} onChange={(event) => onSelect(event.currentTarget.value)}>
        {options.map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Search({ label, value, onText }: { label: string; value: string; onText: (text: string) => void }) {
  return (
    <div class={css.search}>
      <Icon name="search" />
      <input class={css.input} type="search" aria-label={label} placeholder={label} value={value} onInput={(event) => onText(event.currentTarget.value)} data-search />
    </div>
  );
}

/** Text with a button that copies it. */
export function Copyable({ text, name }: { text: string; name: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2_000);
    } catch {
      // Plain http has no clipboard, but the text can be selected.
    }
  };
  return (
    <div class={css.copyRow}>
      <code class={css.code}>{text}</code>
      <button type="button" class={buttons.plain} onClick={copy}>
        <Icon name="copy" size={14} />
        {isCopied ? "Copied" : `Copy ${name}`}
      </button>
    </div>
  );
}

export function FormError({ children }: { children: ComponentChildren }) {
  return children ? (
    <p class={css.error} role="alert">
      {children}
    </p>
  ) : null;
}
