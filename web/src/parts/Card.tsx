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
  /** The title is not shown: what is in the card says it. */
  isBare?: boolean;
  /** Other figures are on their way. */
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

/** Figures that could not be asked for again. */
export function Stale() {
  return (
    <span class={css.stale} role="status">
      <Icon name="warn" size={13} />
      Earlier figures: the server doesn't answer now
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

/** Tabs: arrow keys move between them. */
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

/** What stands where there are no figures. */
export function State({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class={css.state}>
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** Why there is no answer. */
export function Failure({ error, again }: { error: Refusal; again?: () => void }) {
  if (error.status === 403) {
    return (
      <State title="You may not see this">
        <p>{error.message}</p>
      </State>
    );
  }
  return (
    <State title={error.isPassing ? "No answer yet" : "That can't be answered"}>
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

/** Shows an answer, what stands for it until it comes, or why it doesn't. */
export function Answered<T>({ answer, height, children }: { answer: Answer<T>; height?: number; children: (data: T) => ComponentChildren }) {
  if (answer.data !== undefined) return <>{children(answer.data)}</>;
  if (answer.error) return <Failure error={answer.error} again={answer.again} />;
  return <Waiting height={height} />;
}

export const buttons = { plain: css.button!, primary: css.primary!, danger: css.danger! };
