import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { Refusal } from "../api/client";
import type { Answer } from "../api/use";
import { Icon, type IconName } from "./Icon";
import css from "./Card.module.css";

interface CardProps {
  title: string;
  lead?: string;
  class?: string;
  tabs?: ComponentChildren;
  tools?: ComponentChildren;
  isStale?: boolean;
  /** Hides the title, for cards that need none. It still names the section for screen readers. */
  isBare?: boolean;
  /** New figures are loading. */
  isBusy?: boolean;
  children: ComponentChildren;
}

export function Card({ title, lead, class: more = "", tabs, tools, isStale, isBare, isBusy, children }: CardProps) {
  return (
    <section class={more ? `${css.card} ${more}` : css.card} aria-label={title} aria-busy={isBusy}>
      {!isBare && (
        <div class={css.head}>
          <h2 class={css.title}>{title}</h2>
          {tabs}
          {isStale && <Stale />}
          {tools && <div class={css.tools}>{tools}</div>}
        </div>
      )}
      {lead && <p class={css.lead}>{lead}</p>}
      {children}
    </section>
  );
}

/** A warning that the figures are out of date, because the last refresh failed. */
export function Stale() {
  return (
    <span class={css.stale} role="status">
      <Icon name="warn" size={13} />
      Showing earlier figures: the server isn't responding
    </span>
  );
}

export function Tool({ icon, label, pressed, onClick }: { icon: IconName; label: string; pressed?: boolean; onClick: () => void }) {
  return (
    <button type="button" class={css.tool} title={label} aria-label={label} aria-pressed={pressed} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** Tabs. Arrow keys move between them. */
export function Tabs<T extends string>({ label, options, value, onSelect }: { label: string; options: [T, string][]; value: T; onSelect: (value: T) => void }) {
  const list = useRef<HTMLDivElement>(null);
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = (options.findIndex(([id]) => id === value) + step + options.length) % options.length;
    onSelect(options[index]![0]);
    list.current?.querySelectorAll("button")[index]?.focus();
  };
  return (
    <div class={css.tabs} role="tablist" aria-label={label} ref={list} onKeyDown={onKey}>
      {options.map(([id, name]) => (
        <button key={id} type="button" role="tab" class={css.tab} aria-selected={id === value} tabIndex={id === value ? 0 : -1} onClick={() => onSelect(id)}>
          {name}
        </button>
      ))}
    </div>
  );
}

/** A message in place of figures. */
export function State({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class={css.state}>
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** An error message, with a button to retry if that can help. */
export function Failure({ error, again }: { error: Refusal; again?: () => void }) {
  if (error.status === 403) {
    return (
      <State title="You don't have access">
        <p>{error.message}</p>
      </State>
    );
  }
  return (
    <State title={error.isPassing ? "Temporarily unavailable" : "Couldn't load this"}>
      <p>{error.message}</p>
      {again && (
        <button type="button" class={css.button} onClick={again}>
          Try again
        </button>
      )}
    </State>
  );
}

export function Waiting({ height = 180 }: { height?: number }) {
  return <div class={css.wait} style={{ height: `${height}px` }} role="status" aria-label="Loading" />;
}

/** Shows an answer, a placeholder while it loads, or the error. */
export function Answered<T>({ answer, height, children }: { answer: Answer<T>; height?: number; children: (data: T) => ComponentChildren }) {
  if (answer.data !== undefined) return <>{children(answer.data)}</>;
  if (answer.error) return <Failure error={answer.error} again={answer.again} />;
  return <Waiting height={height} />;
}

export const buttons = { plain: css.button!, primary: css.primary!, danger: css.danger! };
