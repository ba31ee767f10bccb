// Texts about days, as marks on charts of days.

import { useState } from "preact/hooks";
import { change } from "../api/client";
import type { Annotation } from "../api/types";
import { useAnnotations } from "../api/definitions";
import { mayDefine, useScene } from "../context";
import { longDay } from "../lib/format";
import type { Days } from "../lib/period";
import { Confirm, Create, useAction } from "./Action";
import { State, Tool } from "./Card";
import { Dialog } from "./Dialog";
import { Input, form } from "./Form";
import layout from "../pages/layout.module.css";
import css from "./Annotations.module.css";

/** The annotations of a period: marks for its charts, a button and a dialog. */
export function useAnnotated({ start_date: start, end_date: end }: Days) {
  const { session } = useScene();
  const annotations = useAnnotations().filter(({ day }) => day >= start && day <= end);
  const [picked, setPicked] = useState<string | null>(null);
  const mayChange = mayDefine(session);

  /** The marks of a chart whose points begin on these days. Points of several days name the day. */
  const marksOf = (days: string[], hasSingleDays: boolean) => ({
    marks: days.map((first, index) => {
      const inside = annotations.filter(({ day }) => day >= first && (index + 1 === days.length || day < days[index + 1]!));
      return inside.map(({ day, text }) => (hasSingleDays ? text : `${longDay(day)}: ${text}`));
    }),
    onPick: mayChange ? (index: number) => setPicked([start, days[index]!.padEnd(10, "-01")].sort()[1]!) : undefined,
    pickHint: "annotate it",
  });
  const tool = annotations.length || mayChange ? <Tool icon="note" label="Annotations" onClick={() => setPicked(end)} /> : null;
  const dialog = picked && <AnnotationsDialog annotations={annotations} day={picked} onClose={() => setPicked(null)} />;
  return { marksOf, tool, dialog };
}

/** The annotations of a period, and a form that adds one. */
function AnnotationsDialog({ annotations, day, onClose }: { annotations: Annotation[]; day: string; onClose: () => void }) {
  const { project, session } = useScene();
  const [edited, setEdited] = useState<Annotation>();
  const [removed, setRemoved] = useState<Annotation>();
  const path = `/projects/${project}/annotations`;
  const mayChange = mayDefine(session);
  return (
    <Dialog title="Annotations" isNarrow onClose={onClose}>
      <div class={form.form}>
        {annotations.length ? (
          <ul class={css.list} aria-label="Annotations">
            {annotations.map((annotation) => (
              <li key={annotation.annotation_id} class={css.item}>
                <div class={css.text}>
                  {annotation.text}
                  <span class={layout.sub}>
                    {longDay(annotation.day)}
                    {annotation.author && `, by ${annotation.author}`}
                  </span>
                </div>
                {mayChange && <Tool icon="edit" label={`Edit ${annotation.text}`} onClick={() => setEdited(annotation)} />}
                {mayChange && <Tool icon="remove" label={`Delete ${annotation.text}`} onClick={() => setRemoved(annotation)} />}
              </li>
            ))}
          </ul>
        ) : (
          <State title="No annotations in this period">
            <p>An annotation says what happened on a day, such as a launch. Charts mark the day.</p>
          </State>
        )}
        {mayChange && <Editor key={edited?.annotation_id} annotation={edited} day={day} path={path} onSaved={edited ? () => setEdited(undefined) : onClose} />}
      </div>
      {removed && <Confirm title="Delete" text={`This deletes the annotation “${removed.text}”.`} run={() => change("DELETE", `${path}/${removed.annotation_id}`)} onClose={() => setRemoved(undefined)} />}
    </Dialog>
  );
}

/** Adds an annotation, or changes one. */
function Editor({ annotation, day: initial, path, onSaved }: { annotation?: Annotation; day: string; path: string; onSaved: () => void }) {
  const [day, setDay] = useState(annotation?.day ?? initial);
  const [text, setText] = useState(annotation?.text ?? "");
  const action = useAction(async () => {
    await (annotation ? change("PATCH", `${path}/${annotation.annotation_id}`, { day, text }) : change("POST", path, { day, text }));
    onSaved();
  });
  return (
    <Create verb={annotation ? "Save annotation" : "Add annotation"} action={action} onSubmit={action.run}>
      <Input label="Day" type="date" value={day} onText={setDay} required />
      <Input label="Text" value={text} onText={setText} required maxLength={200} placeholder="New prices" data-search />
    </Create>
  );
}
