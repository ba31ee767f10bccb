import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./Icon";
import css from "./Menu.module.css";

export const menu = css as Record<string, string>;

interface MenuProps {
  label: string;
  text: ComponentChildren;
  icon?: IconName;
  isAtEnd?: boolean;
  class?: string;
  children: (close: () => void) => ComponentChildren;
}

/** A button that opens a panel. Esc or a click elsewhere closes it. */
export function Menu({ label, text, icon, isAtEnd, class: more = "", children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const close = () => {
    setOpen(false);
    root.current?.querySelector<HTMLElement>("button")?.focus();
  };
  useEffect(() => {
    if (!isOpen) return;
    const outside = (event: Event) => !root.current?.contains(event.target as Node) && setOpen(false);
    addEventListener("pointerdown", outside);
    addEventListener("focusin", outside);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("focusin", outside);
    };
  }, [isOpen]);
  const onKey = (event: KeyboardEvent) => {
    if (!isOpen) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || (event.target as Element).tagName === "INPUT") return;
    event.preventDefault();
    const all = [...root.current!.querySelectorAll<HTMLElement>("button, a")];
    all[(all.indexOf(document.activeElement as HTMLElement) + step + all.length) % all.length]?.focus();
  };
  return (
    <div class={`${css.root} ${more}`} ref={root} onKeyDown={onKey}>
      <button type="button" class={css.trigger} aria-label={label} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {icon && <Icon name={icon} />}
        <span class={css.text}>{text}</span>
        <Icon name="down" size={12} />
      </button>
      {isOpen && <div class={`${css.panel} ${isAtEnd ? css.end : ""}`}>{children(close)}</div>}
    </div>
  );
}
