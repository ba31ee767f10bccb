import { useState } from "preact/hooks";
import { change } from "../../api/client";
import type { ProjectSettings } from "../../api/types";
import { useScene } from "../../context";
import { dayAt } from "../../lib/format";
import { Create, useAction } from "../../parts/Action";
import { Copyable, Input } from "../../parts/Form";
import layout from "../layout.module.css";
import { Resource } from "./Resource";

export function Projects() {
  const { timezone } = useScene();
  return (
    <Resource<ProjectSettings>
      title="Projects"
      path="/projects"
      list="projects"
      empty="No projects"
      columns={[
        { name: "Name", value: ({ name }) => name, show: ({ name }) => <span class={layout.strong}>{name}</span> },
        { name: "ID", value: ({ project_id }) => project_id, show: ({ project_id }) => <code class={layout.mono}>{project_id}</code> },
        { name: "Currency", value: ({ currency }) => currency },
        { name: "Created", value: ({ created_at }) => created_at, show: ({ created_at }) => dayAt(created_at, timezone), isNumber: true },
      ]}
      remove={{
        verb: "Delete",
        warning: ({ name }) => `This deletes ${name} and all of its events. You can't undo this.`,
        run: ({ project_id }) => change("DELETE", `/projects/${project_id}`),
      }}
    >
      <NewProject />
    </Resource>
  );
}

function NewProject() {
  const [name, setName] = useState("");
  const [currency, setCurrency] = useState("USD");
  const [key, setKey] = useState("");
  const action = useAction(async () => {
    const made = await change<ProjectSettings>("POST", "/projects", { name, currency });
    setKey(made.public_key);
    setName("");
  });
  return (
    <>
      <Create verb="Create project" action={action} onSubmit={action.run}>
        <Input label="Name" value={name} onText={setName} required maxLength={200} />
        <Input label="Currency" value={currency} onText={setCurrency} pattern="[A-Za-z]{3}" required hint="Revenue is reported in this currency. You can't change it after the first event." />
      </Create>
      {key && <Copyable name="public key" text={key} />}
    </>
  );
}
