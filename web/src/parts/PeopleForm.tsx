import { useState } from "preact/hooks";
import { useGoalNames } from "../api/definitions";
import { MOST_AT_LEAST, MOST_DAYS, type Asked } from "../lib/people";
import { buttons } from "./Card";
import { EventPicker, type Picked } from "./EventPicker";
import { Input, Select, form } from "./Form";

const PARTS: [Asked["part"], string][] = [
  ["did", "did"],
  ["did_not", "did not"],
];
const WITHIN: [string, string][] = [
  ["window", "In the page's period"],
  ["ever", "Ever"],
  ["days", "In the last days of it"],
];

/** Adds a condition on what people did. */
export function PeopleForm({ onAdd }: { onAdd: (asked: Asked) => void }) {
  const [part, setPart] = useState<Asked["part"]>("did");
  const [picked, setPicked] = useState<Picked>({ kind: "event_name", value: "" });
  const [least, setLeast] = useState("1");
  const [within, setWithin] = useState("window");
  const goals = useGoalNames();
  const [days, setDays] = useState("30");
  const submit = (event: Event) => {
    event.preventDefault();
    onAdd({ part, ...picked, atLeast: Number(least), within: within === "days" ? { days: Number(days) } : (within as "window" | "ever") });
  };
  return (
    <form class={form.form} onSubmit={submit}>
      <div class={form.row}>
        <Select label="People who" value={part} options={PARTS} onSelect={(part) => setPart(part as Asked["part"])} />
        <Input label="At least so many times" type="number" min={1} max={MOST_AT_LEAST} required value={least} onText={setLeast} />
      </div>
      <EventPicker label="What" {...picked} goals={goals} onPick={setPicked} />
      <div class={form.row}>
        <Select label="When" value={within} options={WITHIN} onSelect={setWithin} />
        {within === "days" && <Input label="Days" type="number" min={1} max={MOST_DAYS} required value={days} onText={setDays} />}
      </div>
      <button type="submit" class={buttons.primary}>
        Add condition
      </button>
    </form>
  );
}
