import { useState } from "preact/hooks";
import type { Breakdown, Scalar } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { FIELDS, OPERATORS, fieldName, filtersOf, write, type Filter } from "../lib/filters";
import { counted, valueName } from "../lib/format";
import { kept, windowOf } from "../lib/period";
import { setQuery } from "../lib/router";
import { useDelayed } from "../lib/delayed";
import { buttons } from "./Card";
import { Dialog } from "./Dialog";
import { Input, Select, form } from "./Form";
import { Icon } from "./Icon";
import css from "./Filters.module.css";

export function FilterChips() {
  const { query } = useScene();
  const filters = filtersOf(query);
  if (!filters.length) return null;
  const without = (index: number) => setQuery({ f: filters.filter((_, other) => other !== index).map(write) });
  return (
    <ul class={css.chips} aria-label="Filters">
      {filters.map(({ field, operator, value }, index) => (
        <li key={index} class={css.chip}>
          <span>
            {fieldName(field)} {OPERATORS[operator]} {value !== undefined && <b>{valueName(field, value)}</b>}
          </span>
          <button type="button" class={css.remove} aria-label={`Remove the filter on ${fieldName(field)}`} onClick={() => without(index)}>
            <Icon name="close" size={12} />
          </button>
        </li>
      ))}
    </ul>
  );
}

export function FilterDialog({ onClose }: { onClose: () => void }) {
  const { project, query, today, floor } = useScene();
  const [field, setField] = useState("source");
  const [operator, setOperator] = useState("is");
  const [text, setText] = useState("");
  const search = useDelayed(text);
  const days = kept(windowOf(query, today), floor);
  const body = { start_date: days?.start_date, end_date: days?.end_date, dimension: field, search, order_by: "events", limit: 30 };
  const found = useAnswer<Breakdown>(days && `/projects/${project}/analytics/breakdown`, body, field);
  const needsValue = !operator.endsWith("_set");
  const add = (value?: Scalar) => {
    const isNegative = operator === "is_not" || operator === "not_contains";
    const filter: Filter = value === null ? { field, operator: isNegative ? "is_set" : "is_not_set" } : { field, operator, ...(value === undefined ? {} : { value }) };
    setQuery({ f: [...filtersOf(query).map(write), write(filter)] });
    onClose();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    add(needsValue ? text : undefined);
  };
  return (
    <Dialog title="Add a filter" isNarrow onClose={onClose}>
      <form class={form.form} onSubmit={submit}>
        <div class={form.row}>
          <Select label="Field" value={field} options={Object.entries(FIELDS)} onSelect={setField} />
          <Select label="Condition" value={operator} options={Object.entries(OPERATORS)} onSelect={setOperator} />
        </div>
        {needsValue && <Input label="Value" value={text} onText={setText} autocomplete="off" data-search />}
        {needsValue && (
          <div class={css.options}>
            {found.data?.rows.map(({ value, events }) => (
              <button key={JSON.stringify(value)} type="button" class={css.option} onClick={() => add(value)}>
                <span>{valueName(field, value)}</span>
                <span>{counted(events, "event")}</span>
              </button>
            ))}
            {found.data && !found.data.rows.length && <div class={css.option}>No matching values.</div>}
          </div>
        )}
        <button type="submit" class={buttons.primary} disabled={needsValue && !text}>
          Add filter
        </button>
      </form>
    </Dialog>
  );
}
