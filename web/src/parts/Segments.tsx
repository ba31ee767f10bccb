import { useState } from "preact/hooks";
import { useGoalNames, useSegments } from "../api/definitions";
import { change } from "../api/client";
import type { Segment } from "../api/types";
import { mayDefine, useScene } from "../context";
import { clauseText } from "../lib/filters";
import { choiceOf, conditionOf, conditionText, isChosen } from "../lib/people";
import { setQuery } from "../lib/router";
import { Confirm, Create, useAction } from "./Action";
import { Answered, State, Tool, buttons } from "./Card";
import { Chip, Chips } from "./Chip";
import { FilterForm } from "./FilterForm";
import { Input, form } from "./Form";
import { PeopleForm } from "./PeopleForm";
import css from "./Filters.module.css";

type Content = Pick<Segment, "filters" | "people">;

/** The content of a segment in words. */
function useTexts({ filters, people }: Content): { filters: string[]; people: string[] } {
  const goals = useGoalNames(people.length > 0);
  return { filters: filters.map(clauseText), people: people.map((condition) => `People who ${conditionText(condition, goals)}`) };
}

/** Chooses, saves and changes segments. */
export function Segments({ onChosen }: { onChosen: () => void }) {
  const { session } = useScene();
  const answer = useSegments();
  const [edited, setEdited] = useState<Segment>();
  const mayChange = mayDefine(session);
  if (edited) return <Editor segment={edited} onClose={() => setEdited(undefined)} />;
  return (
    <Answered answer={answer}>
      {({ segments }) => (
        <div class={form.form}>
          {segments.length ? (
            <ul class={css.segments} aria-label="Segments">
              {segments.map((segment) => (
                <Row key={segment.segment_id} segment={segment} onChosen={onChosen} onEdit={mayChange ? () => setEdited(segment) : undefined} />
              ))}
            </ul>
          ) : (
            <State title="No segments yet">
              <p>A segment keeps filters and conditions on people under a name, such as “Mobile visitors from search”. {mayChange && "Add filters first, then save them here."}</p>
            </State>
          )}
          {mayChange && <Save segments={segments} onSaved={onChosen} />}
        </div>
      )}
    </Answered>
  );
}

function Row({ segment, onChosen, onEdit }: { segment: Segment; onChosen: () => void; onEdit?: () => void }) {
  const { project, query } = useScene();
  const { segment_id: id, name } = segment;
  const [isRemoved, setRemoved] = useState(false);
  const texts = useTexts(segment);
  const choose = () => {
    setQuery({ segment: id });
    onChosen();
  };
  const remove = async () => {
    // Questions that name a deleted segment are refused.
    if (query.get("segment") === id) setQuery({ segment: null }, true);
    await change("DELETE", `/projects/${project}/segments/${id}`);
  };
  return (
    <li class={css.segment}>
      <button type="button" class={css.choose} aria-current={query.get("segment") === id} onClick={choose}>
        {name}
        <span class={css.content}>{[...texts.filters, ...texts.people].join("; ") || "All events"}</span>
      </button>
      {onEdit && <Tool icon="edit" label={`Edit ${name}`} onClick={onEdit} />}
      {onEdit && <Tool icon="remove" label={`Delete ${name}`} onClick={() => setRemoved(true)} />}
      {isRemoved && <Confirm title="Delete" text={`This deletes the segment ${name}. Links that use it stop working. Recorded events stay.`} run={remove} onClose={() => setRemoved(false)} />}
    </li>
  );
}

/** Saves the choice in the URL, and that of its segment, as a segment that takes their place. */
function Save({ segments, onSaved }: { segments: Segment[]; onSaved: () => void }) {
  const { project, query } = useScene();
  const [name, setName] = useState("");
  const { filters, people = [], segment } = choiceOf(query);
  const base = segments.find(({ segment_id }) => segment_id === segment);
  const action = useAction(async () => {
    const body = { name, filters: [...(base?.filters ?? []), ...filters], people: [...(base?.people ?? []), ...people] };
    const made = await change<Segment>("POST", `/projects/${project}/segments`, body);
    setQuery({ segment: made.segment_id, f: null, p: null });
    onSaved();
  });
  if (!isChosen({ filters, ...(people.length && { people }) })) return null;
  return (
    <Create verb="Save as segment" action={action} onSubmit={action.run}>
      <Input label="Save the present filters as" value={name} onText={setName} required maxLength={200} placeholder="Mobile visitors from search" />
    </Create>
  );
}

function Editor({ segment, onClose }: { segment: Segment; onClose: () => void }) {
  const { project } = useScene();
  const [name, setName] = useState(segment.name);
  const [filters, setFilters] = useState(segment.filters);
  const [people, setPeople] = useState(segment.people);
  const [adding, setAdding] = useState<"filter" | "people" | null>(null);
  const texts = useTexts({ filters, people });
  const action = useAction(async () => {
    await change("PATCH", `/projects/${project}/segments/${segment.segment_id}`, { name, filters, people });
    onClose();
  });
  const without = <T,>(list: T[], index: number) => list.filter((_, other) => other !== index);
  const item = (text: string, remove: () => void) => (
    <Chip key={text} label={`Remove: ${text}`} onRemove={remove}>
      {text}
    </Chip>
  );
  return (
    <div class={form.form}>
      <Create verb="Save segment" action={action} onSubmit={action.run}>
        <Input label="Name" value={name} onText={setName} required maxLength={200} />
        <Chips label="Content of the segment">
          {texts.filters.map((text, index) => item(text, () => setFilters(without(filters, index))))}
          {texts.people.map((text, index) => item(text, () => setPeople(without(people, index))))}
        </Chips>
      </Create>
      <div class={form.row}>
        <button type="button" class={buttons.plain} aria-expanded={adding === "filter"} onClick={() => setAdding(adding === "filter" ? null : "filter")}>
          Add a filter on events
        </button>
        <button type="button" class={buttons.plain} aria-expanded={adding === "people"} onClick={() => setAdding(adding === "people" ? null : "people")}>
          Add a condition on people
        </button>
        <button type="button" class={buttons.plain} onClick={onClose}>
          Back
        </button>
      </div>
      {adding === "filter" && (
        <FilterForm
          onAdd={(filter) => {
            setFilters([...filters, filter]);
            setAdding(null);
          }}
        />
      )}
      {adding === "people" && (
        <PeopleForm
          onAdd={(asked) => {
            setPeople([...people, conditionOf(asked)]);
            setAdding(null);
          }}
        />
      )}
    </div>
  );
}
