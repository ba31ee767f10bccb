import { useState } from "preact/hooks";
import { change } from "../../api/client";
import type { Member } from "../../api/types";
import { useScene } from "../../context";
import { dayAt } from "../../lib/format";
import { Create, useAction } from "../../parts/Action";
import { Input, Select } from "../../parts/Form";
import layout from "../layout.module.css";
import { Resource } from "./Resource";

const ROLES: [string, string][] = [
  ["member", "Member"],
  ["admin", "Admin"],
  ["owner", "Owner"],
];

export function Members() {
  const { timezone } = useScene();
  return (
    <Resource<Member>
      title="Members"
      lead="People in your organization. Removing a member also revokes their API tokens."
      path="/members"
      list="members"
      empty="No members"
      columns={[
        { name: "E-mail", value: ({ email }) => email, show: ({ email }) => <span class={layout.strong}>{email}</span> },
        { name: "Name", value: ({ name }) => name ?? "", show: ({ name }) => name ?? "–" },
        { name: "Role", value: ({ role }) => role },
        { name: "Added", value: ({ created_at }) => created_at, show: ({ created_at }) => dayAt(created_at, timezone), isNumber: true },
      ]}
      remove={{
        verb: "Remove",
        warning: ({ email }) => `${email} loses access, and their API tokens are revoked.`,
        run: ({ member_id }) => change("DELETE", `/members/${member_id}`),
      }}
    >
      <NewMember />
    </Resource>
  );
}

function NewMember() {
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [role, setRole] = useState("member");
  const action = useAction(async () => {
    await change("POST", "/members", { email, role, ...(name && { name }) });
    setEmail("");
    setName("");
  });
  return (
    <Create verb="Add member" action={action} onSubmit={action.run}>
      <Input label="E-mail" type="email" value={email} onText={setEmail} required />
      <Input label="Name" value={name} onText={setName} />
      <Select label="Role" value={role} options={ROLES} onSelect={setRole} />
    </Create>
  );
}
