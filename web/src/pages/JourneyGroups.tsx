import { useState } from "preact/hooks";
import { useScene } from "../context";
import { MOST_GROUPS, groupingsOf, writeGrouping } from "../lib/journey";
import { setQuery } from "../lib/router";
import { Tool, buttons } from "../parts/Card";
import { Dialog } from "../parts/Dialog";
import { Input, form } from "../parts/Form";
import css from "./Journeys.module.css";

/** Gives many pages one name: the first pattern that matches a page renames it. */
export function GroupsTool() {
  const { query } = useScene();
  const groups = groupingsOf(query);
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState("");
  const [pattern, setPattern] = useState("");
  const set = (all: typeof groups) => setQuery({ g: all.map(writeGrouping) }, true);
  const add = (event: Event) => {
    event.preventDefault();
    set([...groups, { name, pattern }]);
    setName("");
    setPattern("");
  };
  return (
    <>
      <button type="button" class={buttons.plain} onClick={() => setOpen(true)}>
        Group pages{groups.length > 0 && ` (${groups.length})`}
      </button>
      {isOpen && (
        <Dialog title="Group pages" isNarrow onClose={() => setOpen(false)}>
          <form class={form.form} onSubmit={add}>
            <p>Pages of a group count as one page. The first group that fits a page counts.</p>
            <ul class={css.groups} aria-label="Groups of pages">
              {groups.map((group, index) => (
                <li key={writeGrouping(group)} class={css.group}>
                  <span>
                    <strong>{group.name}</strong> {group.pattern}
                  </span>
                  <Tool icon="remove" label={`Remove ${group.name}`} onClick={() => set(groups.toSpliced(index, 1))} />
                </li>
              ))}
            </ul>
            <Input label="Name" value={name} onText={setName} required maxLength={200} placeholder="Blog" />
            <Input label="Pages" value={pattern} onText={setPattern} required maxLength={256} placeholder="/blog/**" hint="* stands for any text without /, ** for any text." />
            <div>
              <button type="submit" class={buttons.primary} disabled={groups.length >= MOST_GROUPS}>
                Add group
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}
