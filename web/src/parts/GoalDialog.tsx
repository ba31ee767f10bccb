import { useState } from "preact/hooks";
import { change } from "../api/client";
import type { Goal, Scalar } from "../api/types";
import { mayDefine, useScene } from "../context";
import { Create, useAction } from "./Action";
import { Tool, buttons } from "./Card";
import { Dialog } from "./Dialog";
import { EventPicker, type Picked } from "./EventPicker";
import { Input, form } from "./Form";

/** Makes a goal, or changes one. `picked` fits a new one. */
export function GoalDialog({ goal, picked, onClose }: { goal?: Goal; picked?: Picked; onClose: () => void }) {
  const { project } = useScene();
  const [name, setName] = useState(goal?.name ?? (picked ? (picked.kind === "page" ? `Visited ${picked.value}` : picked.value) : ""));
  const [fits, setFits] = useState<Picked>(picked ?? (goal?.page != null ? { kind: "page", value: goal.page } : { kind: "event_name", value: goal?.event_name ?? "" }));
  const action = useAction(async () => {
    const path = `/projects/${project}/goals`;
    const body = { name, [fits.kind]: fits.value };
    await (goal ? change("PATCH", `${path}/${goal.goal_id}`, body) : change("POST", path, body));
    onClose();
  });
  return (
    <Dialog title={goal ? "Edit goal" : "Make a goal"} isNarrow onClose={onClose}>
      <Create verb={goal ? "Save goal" : "Make goal"} action={action} onSubmit={action.run}>
        <Input label="Name" value={name} onText={setName} required maxLength={200} placeholder="Signed up" />
        <div class={form.form}>
          <EventPicker label="Reached by" {...fits} onPick={setFits} />
        </div>
      </Create>
    </Dialog>
  );
}

/** A button that makes a goal, for those who may. */
export function MakeGoal() {
  const { session } = useScene();
  const [isOpen, setOpen] = useState(false);
  if (!mayDefine(session)) return null;
  return (
    <>
      <button type="button" class={buttons.primary} onClick={() => setOpen(true)}>
        Make a goal
      </button>
      {isOpen && <GoalDialog onClose={() => setOpen(false)} />}
    </>
  );
}

const KIND_OF: Record<string, Picked["kind"]> = { name: "event_name", path: "page" };

/** Whether rows of a field can become goals. */
export const canBeGoal = (field: string) => field in KIND_OF;

/** A button that makes a goal of a row of events or pages, for those who may. */
export function GoalOfRow({ field, value }: { field: string; value: Scalar }) {
  const { session } = useScene();
  const [isOpen, setOpen] = useState(false);
  const kind = KIND_OF[field];
  if (!kind || typeof value !== "string" || !mayDefine(session)) return null;
  return (
    <>
      <Tool icon="flag" label={`Make ${value} a goal`} onClick={() => setOpen(true)} />
      {isOpen && <GoalDialog picked={{ kind, value }} onClose={() => setOpen(false)} />}
    </>
  );
}
