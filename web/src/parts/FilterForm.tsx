import { useState } from "preact/hooks";
import type { Breakdown, Scalar } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { useDelayed } from "../lib/delayed";
import { FIELDS, OPERATORS, type Filter } from "../lib/filters";
import { counted, valueName } from "../lib/format";
import { kept, windowOf } from "../lib/period";
import { buttons } from "./Card";
import { Input, Select, form } from "./Form";
import css from "./Filters.module.css";

/** Adds a filter on events. */
export function FilterForm({ onAdd }: { onAdd: (filter: Filter) => void }) {
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
    setText("");
    const isNegative = operator === "is_not" || operator === "not_contains";
    onAdd(value === null ? { field, operator: isNegative ? "is_set" : "is_not_set" } : { field, operator, ...(value === undefined ? {} : { value }) });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    add(needsValue ? text : undefined);
  };
  return (
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
  );
}
