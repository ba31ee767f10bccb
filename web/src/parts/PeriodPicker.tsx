import { useState } from "preact/hooks";
import { useScene } from "../context";
import { dayRange } from "../lib/format";
import { PERIODS, compareOf, windowOf, type Compare } from "../lib/period";
import { setQuery } from "../lib/router";
import { buttons } from "./Card";
import { Input } from "./Form";
import { Menu, menu } from "./Menu";

const COMPARED: [Compare, string][] = [
  ["previous_period", "Previous period"],
  ["previous_year", "Previous year"],
  ["none", "No comparison"],
];

export function choosePeriod(period: string): void {
  setQuery({ period, from: null, to: null, interval: null });
}

export function PeriodPicker() {
  const { query, today, timezone } = useScene();
  const window = windowOf(query, today);
  const name = PERIODS.find(({ id }) => id === window.period)?.name ?? dayRange(window.start_date, window.end_date);
  const compare = compareOf(query);
  return (
    <Menu label={`Period: ${name}`} text={name} icon="calendar" isAtEnd>
      {(close) => (
        <>
          {PERIODS.map(({ id, name, key }) => (
            <button
              key={id}
              type="button"
              class={menu.item}
              aria-current={id === window.period}
              onClick={() => {
                choosePeriod(id);
                close();
              }}
            >
              {name}
              <kbd class={menu.key}>{key}</kbd>
            </button>
          ))}
          <hr class={menu.rule} />
          <CustomRange start={window.start_date} end={window.end_date} today={today} onChosen={close} />
          <hr class={menu.rule} />
          <div class={menu.label}>Compare with</div>
          {COMPARED.map(([id, name]) => (
            <button
              key={id}
              type="button"
              class={menu.item}
              aria-current={id === compare}
              onClick={() => {
                setQuery({ compare: id === "previous_period" ? null : id });
                close();
              }}
            >
              {name}
              {id === "previous_period" && <kbd class={menu.key}>X</kbd>}
            </button>
          ))}
          <div class={menu.label}>Times are in {timezone}</div>
        </>
      )}
    </Menu>
  );
}

function CustomRange({ start, end, today, onChosen }: { start: string; end: string; today: string; onChosen: () => void }) {
  const [from, setFrom] = useState(start);
  const [to, setTo] = useState(end);
  const isValid = from && to && from <= to;
  const choose = (event: Event) => {
    event.preventDefault();
    setQuery({ period: "custom", from, to, interval: null });
    onChosen();
  };
  return (
    <form class={menu.custom} onSubmit={choose}>
      <Input label="From" type="date" value={from} max={today} onText={setFrom} />
      <Input label="To" type="date" value={to} max={today} onText={setTo} />
      <button type="submit" class={buttons.plain} disabled={!isValid}>
        Apply
      </button>
    </form>
  );
}
