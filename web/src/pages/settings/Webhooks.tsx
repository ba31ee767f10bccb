import { useState } from "preact/hooks";
import { change } from "../../api/client";
import type { Webhook } from "../../api/types";
import { useScene } from "../../context";
import { dayAt } from "../../lib/format";
import { Create, useAction } from "../../parts/Action";
import { Input } from "../../parts/Form";
import layout from "../layout.module.css";
import { Resource } from "./Resource";
import { Secret } from "./Secret";

export function Webhooks() {
  const { timezone } = useScene();
  return (
    <Resource<Webhook>
      title="Webhooks"
      lead="headcount sends notifications to these URLs. It signs each request and retries failed ones, so a notification can arrive more than once."
      path="/webhooks"
      list="webhooks"
      empty="No webhooks"
      columns={[
        { name: "URL", value: ({ url }) => url, show: ({ url }) => <span class={layout.strong}>{url}</span> },
        { name: "Project", value: ({ project_id }) => project_id, show: ({ project_id }) => <code class={layout.mono}>{project_id}</code> },
        { name: "Events", value: ({ events }) => events.join(", ") },
        { name: "Status", value: ({ status }) => status, show: ({ status }) => <span class={layout.badge}>{status}</span> },
        { name: "Created", value: ({ created_at }) => created_at, show: ({ created_at }) => dayAt(created_at, timezone), isNumber: true },
      ]}
      remove={{
        verb: "Delete",
        warning: ({ url }) => `${url} gets no more notifications, not even pending ones.`,
        run: ({ id }) => change("DELETE", `/webhooks/${id}`),
      }}
    >
      <NewWebhook />
    </Resource>
  );
}

function NewWebhook() {
  const { project } = useScene();
  const [url, setUrl] = useState("");
  const [secret, setSecret] = useState("");
  const action = useAction(async () => {
    const made = await change<{ secret: string }>("POST", "/webhooks", { project_id: project, url });
    setSecret(made.secret);
    setUrl("");
  });
  return (
    <>
      <Create verb="Add webhook" action={action} onSubmit={action.run}>
        <Input label="URL" type="url" value={url} onText={setUrl} required placeholder="https://" hint="It gets the notifications of this project." />
      </Create>
      {secret && <Secret name="signing secret" text={secret} />}
    </>
  );
}
