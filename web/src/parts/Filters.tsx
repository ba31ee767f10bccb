import { useState } from "preact/hooks";
import { useGoalNames, useSegments } from "../api/definitions";
import { useScene } from "../context";
import { OPERATORS, clauseText, clausesOf, fieldName, toggled, valueText, write, type Clause } from "../lib/filters";
import { conditionText, conditionsOf, writeAsked } from "../lib/people";
import { setQuery } from "../lib/router";
import { Tabs } from "./Card";
import { Chip, Chips } from "./Chip";
import { Dialog } from "./Dialog";
import { FilterForm } from "./FilterForm";
import { PeopleForm } from "./PeopleForm";
import { Segments } from "./Segments";
import css from "./Filters.module.css";

/** What chooses the events of all figures. */
export function FilterChips() {
  const { query } = useScene();
  const filters = clausesOf(query);
  const people = conditionsOf(query);
  const segment = query.get("segment");
  const goals = useGoalNames(people.some(({ condition: { did, did_not } }) => did?.goal ?? did_not?.goal));
  const segments = useSegments(segment !== null).data?.segments;
  if (!filters.length && !people.length && !segment) return null;
  const remove = (name: "f" | "p", text: string) => setQuery({ [name]: toggled(query.getAll(name), text) });
  return (
    <Chips label="Filters">
      {segment && (
        <Chip label="Remove the segment" onRemove={() => setQuery({ segment: null })}>
          Segment <b>{segments?.find(({ segment_id }) => segment_id === segment)?.name ?? ""}</b>
        </Chip>
      )}
      {filters.map(({ clause, text }) => (
        <Chip key={text} label={`Remove the filter on ${"any" in clause ? "alternatives" : fieldName(clause.field)}`} onRemove={() => remove("f", text)}>
          <ClauseText clause={clause} />
        </Chip>
      ))}
      {people.map(({ condition, text }) => (
        <Chip key={text} label="Remove the condition on people" onRemove={() => remove("p", text)}>
          People who {conditionText(condition, goals)}
        </Chip>
      ))}
    </Chips>
  );
}

function ClauseText({ clause }: { clause: Clause }) {
  if ("any" in clause) return <>{clauseText(clause)}</>;
  return (
    <>
      {fieldName(clause.field)} {OPERATORS[clause.operator]} <b>{valueText(clause)}</b>
    </>
  );
}

type Kind = "events" | "people" | "segments";

export function FilterDialog({ onClose }: { onClose: () => void }) {
  const { query } = useScene();
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
        <Tabs label="Kind of filter" options={kinds} value={kind} onSelect={setKind} />
      </div>
      {kind === "events" && <FilterForm onAdd={(filter) => add("f", write(filter))} />}
      {kind === "people" && <PeopleForm onAdd={(asked) => add("p", writeAsked(asked))} />}
      {kind === "segments" && <Segments onChosen={onClose} />}
    </Dialog>
  );
}
