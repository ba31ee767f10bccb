import { useState } from "preact/hooks";
import { change } from "../api/client";
import { useAnswer } from "../api/use";
import { mayDefine, useScene } from "../context";
import { funnelOf, paramsOf, type KeptFunnel } from "../lib/funnel";
import { choiceOf } from "../lib/people";
import { setQuery } from "../lib/router";
import { Confirm, Create, useAction } from "../parts/Action";
import { Answered, State, Tool, buttons } from "../parts/Card";
import { Dialog } from "../parts/Dialog";
import { FormError, Input, form } from "../parts/Form";
import css from "./Funnels.module.css";

/** Saves the funnel under a name, and opens, renames and deletes saved ones. Shares only open them. */
export function KeptFunnels() {
  const { project, query } = useScene();
  const answer = useAnswer<{ funnels: KeptFunnel[] }>(`/projects/${project}/funnels`);
  const [isOpen, setOpen] = useState(false);
  const open = answer.data?.funnels.find(({ funnel_id }) => funnel_id === query.get("funnel"));
  return (
    <>
      {open && <span class={css.open}>{open.name}</span>}
      <button type="button" class={buttons.plain} onClick={() => setOpen(true)}>
        Saved funnels
      </button>
      {isOpen && (
        <Dialog title="Saved funnels" isNarrow onClose={() => setOpen(false)}>
          <Answered answer={answer}>{({ funnels }) => <List funnels={funnels} open={open} onClose={() => setOpen(false)} />}</Answered>
        </Dialog>
      )}
    </>
  );
}

function List({ funnels, open, onClose }: { funnels: KeptFunnel[]; open?: KeptFunnel; onClose: () => void }) {
  const { session } = useScene();
  const mayChange = mayDefine(session);
  return (
    <div class={form.form}>
      {funnels.length ? (
        <ul class={css.kept} aria-label="Saved funnels">
          {funnels.map((funnel) => (
            <Row key={funnel.funnel_id} funnel={funnel} isOpen={funnel === open} mayChange={mayChange} onClose={onClose} />
          ))}
        </ul>
      ) : (
        <State title="No saved funnels">
          <p>A saved funnel keeps steps, rules and filters under a name, for everyone in this project.</p>
        </State>
      )}
      {mayChange && <Save open={open} onClose={onClose} />}
    </div>
  );
}

function Row({ funnel, isOpen, mayChange, onClose }: { funnel: KeptFunnel; isOpen: boolean; mayChange: boolean; onClose: () => void }) {
  const { project } = useScene();
  const { funnel_id, name } = funnel;
  const path = `/projects/${project}/funnels/${funnel_id}`;
  const [isRenamed, setRenamed] = useState(false);
  const [isRemoved, setRemoved] = useState(false);
  const [text, setText] = useState(name);
  const rename = useAction(async () => {
    await change("PATCH", path, { name: text });
    setRenamed(false);
  });
  const show = () => {
    setQuery(paramsOf(funnel));
    onClose();
  };
  const remove = async () => {
    await change("DELETE", path);
    if (isOpen) setQuery({ funnel: null }, true);
  };
  return (
    <li>
      <div class={css.keptRow}>
        <button type="button" class={css.keptName} aria-current={isOpen} onClick={show}>
          {name}
        </button>
        {mayChange && <Tool icon="edit" label={`Rename ${name}`} onClick={() => setRenamed(!isRenamed)} />}
        {mayChange && <Tool icon="remove" label={`Delete ${name}`} onClick={() => setRemoved(true)} />}
      </div>
      {isRenamed && (
        <Create verb="Rename" action={rename} onSubmit={rename.run}>
          <Input label={`New name of ${name}`} value={text} onText={setText} required maxLength={200} />
        </Create>
      )}
      {isRemoved && <Confirm title="Delete" text={`This deletes the saved funnel ${name}. Recorded events stay.`} run={remove} onClose={() => setRemoved(false)} />}
    </li>
  );
}

/** Saves the funnel in the URL as a new one, or as the one that is open. */
function Save({ open, onClose }: { open?: KeptFunnel; onClose: () => void }) {
  const { project, query } = useScene();
  const [name, setName] = useState("");
  const { filters, people = [], segment = null } = choiceOf(query);
  const funnel = funnelOf(query);
  const body = { ...funnel, filters, people, segment };
  const path = `/projects/${project}/funnels`;
  const create = useAction(async () => {
    const made = await change<KeptFunnel>("POST", path, { name, ...body });
    setQuery({ funnel: made.funnel_id });
    onClose();
  });
  const update = useAction(async () => {
    await change("PATCH", `${path}/${open!.funnel_id}`, body);
    onClose();
  });
  if (funnel.steps.length < 2) return null;
  return (
    <>
      <Create verb="Save as new" action={create} onSubmit={create.run}>
        <Input label="Save this funnel as" value={name} onText={setName} required maxLength={200} placeholder="From the prices to an order" />
      </Create>
      {open && (
        <div>
          <FormError>{update.error}</FormError>
          <button type="button" class={buttons.plain} disabled={update.isBusy} onClick={() => update.run()}>
            Save changes to {open.name}
          </button>
        </div>
      )}
    </>
  );
}
