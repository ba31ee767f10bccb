import { useId, useState } from "preact/hooks";
import type { Breakdown } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { useDelayed } from "../lib/delayed";
import { KINDS, type Kind } from "../lib/people";
import { kept, windowOf } from "../lib/period";
import { Input, Select } from "./Form";

const MOST_SUGGESTED = 30;

export interface Picked {
  kind: Kind;
  value: string;
}

interface EventPickerProps extends Picked {
  label: string;
  /** The names of the goals by their ids. Without them, no goal can be chosen. */
  goals?: Map<string, string>;
  onPick: (picked: Picked) => void;
}

/** Chooses an event by name, pages by a pattern, or a goal. It suggests those of the project. */
export function EventPicker({ label, kind, value, goals = new Map(), onPick }: EventPickerProps) {
  const first = (kind: Kind) => (kind === "goal" ? ([...goals.keys()][0] ?? "") : "");
  const offered = KINDS.filter(([id]) => id !== "goal" || goals.size > 0 || kind === "goal");
  return (
    <>
      <Select label={label} value={kind} options={offered} onSelect={(kind) => onPick({ kind: kind as Kind, value: first(kind as Kind) })} />
      {kind === "goal" ? (
        <Select label="Goal" value={value} options={[...goals]} onSelect={(value) => onPick({ kind, value })} />
      ) : (
        <Suggested kind={kind} value={value} onText={(value) => onPick({ kind, value })} />
      )}
    </>
  );
}

interface SuggestedProps {
  kind: "event_name" | "page";
  value: string;
  /** Leaves out what `*` means. */
  isBrief?: boolean;
  onText: (text: string) => void;
}

export function Suggested({ kind, value, isBrief, onText }: SuggestedProps) {
  const { project, query, today, floor } = useScene();
  const list = useId();
  const [isUsed, setUsed] = useState(false);
  const search = useDelayed(value);
  const days = kept(windowOf(query, today), floor);
  const dimension = kind === "page" ? "path" : "name";
  const body = { start_date: days?.start_date, end_date: days?.end_date, dimension, search, order_by: "events", limit: MOST_SUGGESTED };
  const { data } = useAnswer<Breakdown>(isUsed && days ? `/projects/${project}/analytics/breakdown` : null, body, dimension);
  const isPage = kind === "page";
  return (
    <>
      <Input
        label={isPage ? "Page" : "Event name"}
        value={value}
        onText={onText}
        onFocus={() => setUsed(true)}
        required
        maxLength={isPage ? 256 : 100}
        list={list}
        autocomplete="off"
        placeholder={isPage ? "/pricing/**" : "signup"}
        hint={isPage && !isBrief ? "* stands for any text without /, ** for any text." : undefined}
      />
      <datalist id={list}>
        {data?.rows.map(({ value }) => value !== null && <option key={value} value={String(value)} />)}
      </datalist>
    </>
  );
}
