import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useGoalNames, useSegments } from "../api/definitions";
import { useScene } from "../context";
import { OPERATORS, fieldName, filtersOf, valueText, write } from "../lib/filters";
import { askedOf, conditionOf, conditionText, writeAsked } from "../lib/people";
import { setQuery } from "../lib/router";
import { Tabs } from "./Card";
import { Dialog } from "./Dialog";
import { FilterForm } from "./FilterForm";
import { Icon } from "./Icon";
import { PeopleForm } from "./PeopleForm";
import { Segments } from "./Segments";
import css from "./Filters.module.css";

/** What chooses the events of all figures. */
export function FilterChips() {
  const { query } = useScene();
  const filters = filtersOf(query);
  const people = askedOf(query);
  const segment = query.get("segment");
  const goals = useGoalNames(people.some(({ kind }) => kind === "goal"));
  const segments = useSegments(segment !== null).data?.segments;
  if (!filters.length && !people.length && !segment) return null;
  const without = <T,>(list: T[], index: number, text: (one: T) => string) => list.filter((_, other) => other !== index).map(text);
  return (
    <ul class={css.chips} aria-label="Filters">
      {segment && (
        <Chip label="Remove the segment" onRemove={() => setQuery({ segment: null })}>
          Segment <b>{segments?.find(({ segment_id }) => segment_id === segment)?.name ?? ""}</b>
        </Chip>
      )}
      {filters.map((filter, index) => (
        <Chip key={index} label={`Remove the filter on ${fieldName(filter.field)}`} onRemove={() => setQuery({ f: without(filters, index, write) })}>
          {fieldName(filter.field)} {OPERATORS[filter.operator]} <b>{valueText(filter)}</b>
        </Chip>
      ))}
      {people.map((asked, index) => (
        <Chip key={index} label="Remove the condition on people" onRemove={() => setQuery({ p: without(people, index, writeAsked) })}>
          People who {conditionText(conditionOf(asked), goals)}
        </Chip>
      ))}
    </ul>
  );
}

function Chip({ label, onRemove, children }: { label: string; onRemove: () => void; children: ComponentChildren }) {
  return (
    <li class={css.chip}>
      <span>{children}</span>
      <button type="button" class={css.remove} aria-label={label} onClick={onRemove}>
        <Icon name="close" size={12} />
      </button>
    </li>
  );
}

type Kind = "events" | "people" | "segments";

export function FilterDialog({ onClose }: { onClose: () => void }) {
  const { query, session } = useScene();
  const [kind, setKind] = useState<Kind>("events");
  const kinds: [Kind, string][] = [
    ["events", "Events"],
    ["people", "People"],
    ["segments", "Segments"],
  ];
  const add = (name: "f" | "p", text: string) => {
    setQuery({ [name]: [...query.getAll(name), text] });
    onClose();
  };
  return (
    <Dialog title="Add a filter" isNarrow onClose={onClose}>
      <div class={css.kinds}>
        <Tabs label="Kind of filter" options={session.share ? kinds.slice(0, 2) : kinds} value={kind} onSelect={setKind} />
      </div>
      {kind === "events" && <FilterForm onAdd={(filter) => add("f", write(filter))} />}
      {kind === "people" && <PeopleForm onAdd={(asked) => add("p", writeAsked(asked))} />}
      {kind === "segments" && <Segments onChosen={onClose} />}
    </Dialog>
  );
}
