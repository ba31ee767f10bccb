import { useState } from "preact/hooks";
import { change } from "../../api/client";
import type { ProjectSettings } from "../../api/types";
import { useAnswer } from "../../api/use";
import { useScene } from "../../context";
import { Create, useAction } from "../../parts/Action";
import { Answered, Card, buttons } from "../../parts/Card";
import { Copyable, FormError, Input, Select, form } from "../../parts/Form";
import { snippet } from "../FirstSteps";
import layout from "../layout.module.css";
import css from "../Settings.module.css";
import { Resource } from "./Resource";

export function Tracking() {
  const { project } = useScene();
  const path = `/projects/${project}`;
  const answer = useAnswer<ProjectSettings>(path);
  return (
    <div class={layout.stack}>
      <Card title="Snippet" lead="Sends pageviews from your site. docs/TRACKER.md describes all options.">
        <Answered answer={answer} height={90}>
          {({ public_key }) => <Copyable name="snippet" text={snippet(public_key)} />}
        </Answered>
      </Card>
      <Keys path={path} />
      <Answered answer={answer} height={200}>{(settings) => <Policies settings={settings} />}</Answered>
      <Answered answer={answer} height={200}>{(settings) => <ExcludedReferrers settings={settings} />}</Answered>
    </div>
  );
}

interface Key {
  public_key: string;
  rate_limit: number;
}

function Keys({ path }: { path: string }) {
  return (
    <Resource<Key>
      title="Public keys"
      lead="Your pages and apps send events with a public key. To rotate a key, add a new one, update your pages, then remove the old one."
      path={`${path}/keys`}
      list="keys"
      empty="No public keys"
      columns={[
        { name: "Key", value: ({ public_key }) => public_key, show: ({ public_key }) => <code class={layout.mono}>{public_key}</code> },
        { name: "Events per second", value: ({ rate_limit }) => rate_limit, show: ({ rate_limit }) => rate_limit || "no limit", isNumber: true },
      ]}
      remove={{
        verb: "Remove",
        warning: ({ public_key }) => `The server will reject events sent with ${public_key}.`,
        run: ({ public_key }) => change("DELETE", `${path}/keys/${public_key}`),
      }}
    >
      <AddKey path={path} />
    </Resource>
  );
}

function AddKey({ path }: { path: string }) {
  const action = useAction(async () => {
    await change("POST", `${path}/keys`);
  });
  return (
    <>
      <FormError>{action.error}</FormError>
      <button type="button" class={buttons.plain} disabled={action.isBusy} onClick={() => action.run()}>
        Add key
      </button>
    </>
  );
}

const YES_NO: [string, string][] = [
  ["true", "Yes"],
  ["false", "No"],
];

function Policies({ settings }: { settings: ProjectSettings }) {
  const { project } = useScene();
  const action = useAction(async (patch: object) => {
    await change("PATCH", `/projects/${project}`, patch);
  });
  const choose = (field: string, options: [string, string][], label: string, value: string | boolean) => (
    <Select label={label} value={String(value)} options={options} onSelect={(chosen) => action.run({ [field]: typeof value === "boolean" ? chosen === "true" : chosen })} />
  );
  return (
    <Card title="Recording">
      <div class={form.form}>
        <div class={form.row}>
          {choose("cookieless", YES_NO, "Count visitors without an ID", settings.cookieless)}
          {choose("bots", [["drop", "Drop"], ["record", "Record as bots"]], "Bots", settings.bots)}
          {choose("signals_policy", [["record", "Record normally"], ["anonymize", "Record anonymously"], ["drop", "Drop"]], "Global Privacy Control and Do Not Track", settings.signals_policy)}
          {choose("server_only_revenue", YES_NO, "Count revenue from servers only", settings.server_only_revenue)}
        </div>
        <p class={`${layout.quiet} ${css.wrap}`}>Changes apply to new events.</p>
        <FormError>{action.error}</FormError>
      </div>
    </Card>
  );
}

/** Splits hosts at commas and spaces. */
const hosts = (text: string) => text.split(/[\s,]+/).filter(Boolean);

function ExcludedReferrers({ settings }: { settings: ProjectSettings }) {
  const { project } = useScene();
  const [own, setOwn] = useState(settings.own_domains.join(", "));
  const [ignored, setIgnored] = useState(settings.ignored_referrers.join(", "));
  const action = useAction(async () => {
    const changed = await change<ProjectSettings>("PATCH", `/projects/${project}`, { own_domains: hosts(own), ignored_referrers: hosts(ignored) });
    setOwn(changed.own_domains.join(", "));
    setIgnored(changed.ignored_referrers.join(", "));
  });
  return (
    <Card title="Excluded referrers" lead="Links from these hosts and their subdomains don't count as a source. You don't need to list the site's own domain, or well-known payment and sign-in pages.">
      <Create verb="Save hosts" action={action} onSubmit={action.run}>
        <Input label="Own domains" value={own} onText={setOwn} placeholder="shop.example, docs.example" hint="Your other sites." />
        <Input label="Ignored referrers" value={ignored} onText={setIgnored} placeholder="pay.example" hint="For example, your bank's payment page." />
      </Create>
    </Card>
  );
}
