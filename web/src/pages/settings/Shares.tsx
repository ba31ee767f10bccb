import { useState } from "preact/hooks";
import { change } from "../../api/client";
import { useScene } from "../../context";
import { dayAt } from "../../lib/format";
import { Create, useAction } from "../../parts/Action";
import { Input, Select } from "../../parts/Form";
import layout from "../layout.module.css";
import { Resource } from "./Resource";
import { Secret } from "./Secret";

interface Share {
  share_id: string;
  name: string;
  revenue: boolean;
  created_at: string;
  expires_at: string | null;
}

export function Shares() {
  const { project, timezone } = useScene();
  const path = `/projects/${project}/shares`;
  return (
    <Resource<Share>
      title="Shares"
      lead="A share is a read-only link to this project. Anyone with the link can open it. It never shows people or companies."
      path={path}
      list="shares"
      empty="No shares"
      columns={[
        { name: "Name", value: ({ name }) => name, show: ({ name }) => <span class={layout.strong}>{name}</span> },
        { name: "Revenue", value: ({ revenue }) => revenue, show: ({ revenue }) => (revenue ? "shown" : "hidden") },
        { name: "Created", value: ({ created_at }) => created_at, show: ({ created_at }) => dayAt(created_at, timezone), isNumber: true },
        { name: "Expires", value: ({ expires_at }) => expires_at ?? "", show: ({ expires_at }) => (expires_at ? dayAt(expires_at, timezone) : "never"), isNumber: true },
      ]}
      remove={{
        verb: "Revoke",
        warning: ({ name }) => `The link of ${name} stops working immediately, for everyone.`,
        run: ({ share_id }) => change("DELETE", `${path}/${share_id}`),
      }}
    >
      <NewShare path={path} />
    </Resource>
  );
}

function NewShare({ path }: { path: string }) {
  const [name, setName] = useState("");
  const [revenue, setRevenue] = useState("false");
  const [address, setAddress] = useState("");
  const action = useAction(async () => {
    const made = await change<{ url: string }>("POST", path, { name, revenue: revenue === "true" });
    setAddress(made.url);
    setName("");
  });
  return (
    <>
      <Create verb="Create share" action={action} onSubmit={action.run}>
        <Input label="Name" value={name} onText={setName} required maxLength={200} />
        <Select label="Revenue" value={revenue} options={[["false", "Hidden"], ["true", "Shown"]]} onSelect={setRevenue} />
      </Create>
      {address && <Secret name="link" text={address} />}
    </>
  );
}
