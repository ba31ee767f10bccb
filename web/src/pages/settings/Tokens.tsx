import { useState } from "preact/hooks";
import { change } from "../../api/client";
import type { Token } from "../../api/types";
import { useScene } from "../../context";
import { dayAt } from "../../lib/format";
import { Create, useAction } from "../../parts/Action";
import { Input, Select } from "../../parts/Form";
import layout from "../layout.module.css";
import css from "../Settings.module.css";
import { Resource } from "./Resource";
import { Secret } from "./Secret";

const SCOPES = [
  "analytics:read",
  "events:read",
  "events:write",
  "revenue:read",
  "identities:read",
  "companies:read",
  "companies:write",
  "groups:read",
  "privacy_requests:read",
  "privacy_requests:write",
  "admin",
];

export function Tokens() {
  const { timezone } = useScene();
  return (
    <Resource<Token>
      title="API tokens"
      lead="Servers and people access the API with tokens. You see a token only once: headcount stores just its hash."
      path="/api-tokens"
      list="api_tokens"
      empty="No API tokens"
      columns={[
        { name: "Name", value: ({ name }) => name, show: ({ name }) => <span class={layout.strong}>{name}</span> },
        { name: "Role", value: ({ role }) => role },
        { name: "Scopes", value: ({ scopes }) => scopes.join(", "), show: ({ scopes }) => <span class={layout.quiet}>{scopes.length === SCOPES.length ? "all" : scopes.join(", ")}</span> },
        { name: "Access", value: ({ project_id }) => project_id ?? "", show: ({ project_id }) => (project_id ? <code class={layout.mono}>{project_id}</code> : "whole organization") },
        { name: "Created", value: ({ created_at }) => created_at, show: ({ created_at }) => dayAt(created_at, timezone), isNumber: true },
        { name: "Expires", value: ({ expires_at }) => expires_at ?? "", show: ({ expires_at }) => (expires_at ? dayAt(expires_at, timezone) : "never"), isNumber: true },
      ]}
      remove={{
        verb: "Revoke",
        warning: ({ name }) => `${name} stops working immediately. Browsers that signed in with it are signed out.`,
        run: ({ token_id }) => change("DELETE", `/api-tokens/${token_id}`),
      }}
    >
      <NewToken />
    </Resource>
  );
}

function NewToken() {
  const { session } = useScene();
  const [name, setName] = useState("");
  const [role, setRole] = useState("member");
  const [project, setProject] = useState("");
  const [scopes, setScopes] = useState(["analytics:read"]);
  const [token, setToken] = useState("");
  const action = useAction(async () => {
    const made = await change<{ token: string }>("POST", "/api-tokens", { name, role, scopes, ...(project && { project_id: project }) });
    setToken(made.token);
    setName("");
  });
  const toggle = (scope: string) => setScopes(scopes.includes(scope) ? scopes.filter((other) => other !== scope) : [...scopes, scope]);
  return (
    <>
      <Create verb="Create token" action={action} onSubmit={action.run}>
        <Input label="Name" value={name} onText={setName} required maxLength={200} />
        <Select label="Role" value={role} options={[["member", "Member"], ["admin", "Admin"], ["owner", "Owner"]]} onSelect={setRole} />
        <Select label="Access" value={project} options={[["", "Whole organization"], ...session.projects.map(({ project_id, name }): [string, string] => [project_id, name])]} onSelect={setProject} />
        <fieldset class={css.scopes}>
          <legend>Scopes</legend>
          {SCOPES.map((scope) => (
            <label key={scope}>
              <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
              {scope}
            </label>
          ))}
        </fieldset>
      </Create>
      {token && <Secret name="token" text={token} />}
    </>
  );
}
