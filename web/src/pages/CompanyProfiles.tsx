// Company profiles: the organization's own, and those of target accounts.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refusal, ask, change } from "../api/client";
import type { CompanyFigures } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { counted, dayAt, moment, sentence } from "../lib/format";
import { address } from "../lib/router";
import { Create, useAction } from "../parts/Action";
import { Answered, Card, State, buttons } from "../parts/Card";
import { FormError, Input } from "../parts/Form";
import { Table, type Column } from "../parts/Table";
import { Resource } from "./settings/Resource";
import css from "./CompanyProfiles.module.css";
import layout from "./layout.module.css";

interface Source {
  url: string;
  status: number | null;
  error: string | null;
  fetched_at: string;
}

interface CompanyProfile {
  id: string;
  kind: "self" | "account";
  label: string;
  website: string | null;
  name: string | null;
  description: string | null;
  industry: string | null;
  logo_url: string | null;
  social: Record<string, string>;
  emails: string[];
  technologies: string[];
  sources: Source[];
  company_id: string | null;
  updated_at: string;
}

interface Build {
  run_id: string;
  status: "queued" | "running" | "succeeded" | "failed";
  error: { code: string; message: string; url: string | null } | null;
  actions_spent: number;
}

const KINDS = { self: "your organization", account: "target account" };
const PROGRESS = { queued: "Research is queued.", running: "Reading the website…", succeeded: "Research finished.", failed: "" };
/** How often the page checks on a build. */
const POLL_MS = 1_000;
/** Profiles and companies have different ids. */
export const isProfile = (id: string) => id.startsWith("cp_");

export function CompanyProfiles() {
  const { project, timezone } = useScene();
  return (
    <Resource<CompanyProfile>
      title="Company profiles"
      lead="Companies you follow, whether or not they have visited. Research reads a company's website and fills in missing fields."
      path="/company-profiles"
      list="company_profiles"
      empty="No profiles yet"
      columns={[
        {
          name: "Company",
          value: ({ label }) => label,
          show: ({ id, label, name }) => (
            <a class={layout.strong} href={address(project, "companies", id)}>
              {label}
              {name && name !== label && <span class={layout.sub}>{name}</span>}
            </a>
          ),
        },
        { name: "Website", value: ({ website }) => website ?? "" },
        { name: "Kind", value: ({ kind }) => kind, show: ({ kind }) => <span class={layout.badge}>{KINDS[kind]}</span> },
        { name: "Updated", value: ({ updated_at }) => updated_at, show: ({ updated_at }) => dayAt(updated_at, timezone), isNumber: true },
      ]}
      remove={{ verb: "Delete", warning: ({ label }) => `This deletes the profile of ${label}. Recorded events and figures stay.`, run: ({ id }) => change("DELETE", `/company-profiles/${id}`) }}
    >
      <NewAccount />
    </Resource>
  );
}

function NewAccount() {
  const [label, setLabel] = useState("");
  const [website, setWebsite] = useState("");
  const action = useAction(async () => {
    await change("POST", "/company-profiles", { label, website: website || null });
    setLabel("");
    setWebsite("");
  });
  return (
    <Create verb="Add target account" action={action} onSubmit={action.run}>
      <Input label="Label" value={label} onText={setLabel} required placeholder="Globex" />
      <Input label="Website" value={website} onText={setWebsite} placeholder="globex.com" hint="Research reads this website." />
    </Create>
  );
}

export function CompanyProfilePage({ id }: { id: string }) {
  const { project } = useScene();
  const answer = useAnswer<CompanyProfile>(`/company-profiles/${encodeURIComponent(id)}`, undefined, id);
  return (
    <div class={layout.stack}>
      <a class={layout.back} href={address(project, "companies")}>
        ← All companies
      </a>
      <Card title="Company profile" isBare isStale={answer.isStale}>
        <Answered answer={answer} height={240}>
          {(profile) => (
            <>
              <div class={layout.identity}>
                <h2>{profile.name ?? profile.label}</h2>
                <span class={layout.badge}>{KINDS[profile.kind]}</span>
                {profile.name && profile.name !== profile.label && <span class={layout.quiet}>{profile.label}</span>}
              </div>
              <Facts profile={profile} />
              {profile.website && <BuildRun profile={profile} done={answer.again} />}
            </>
          )}
        </Answered>
      </Card>
      {answer.data && <Sources sources={answer.data.sources} />}
    </div>
  );
}

function Facts({ profile }: { profile: CompanyProfile }) {
  const { website, description, industry, emails, technologies, social, logo_url, company_id } = profile;
  const facts: [string, ComponentChildren][] = [
    ["Website", website && <Outside href={website} />],
    ["Description", description],
    ["Industry", industry],
    ["E-mail", emails.join(", ")],
    ["Technologies", technologies.join(", ")],
    ["Social profiles", Object.keys(social).length > 0 && <Links of={social} />],
    ["Logo", logo_url && <Outside href={logo_url} />],
    ["Activity", company_id && <Figures id={company_id} />],
  ];
  return (
    <dl class={css.facts}>
      {facts.map(([name, value]) => (
        <div key={name} class={css.fact}>
          <dt>{name}</dt>
          <dd>{value || <span class={layout.quiet}>unknown</span>}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The recorded activity of the company with the website's domain. */
function Figures({ id }: { id: string }) {
  const { project } = useScene();
  const { data, error } = useAnswer<CompanyFigures>(`/companies/${encodeURIComponent(id)}/metrics`, undefined, id);
  if (data) {
    return (
      <a href={address(project, "companies", id)}>
        {counted(data.events, "event")} from {counted(data.users, "person", "people")} in the last 30 days
      </a>
    );
  }
  return <span class={layout.quiet}>{error?.status === 404 ? "no events recorded" : error?.message}</span>;
}

/** A link to another site, without a referrer. Only web addresses become links. */
function Outside({ href, name }: { href: string; name?: string }) {
  if (!/^https?:\/\//i.test(href)) return <>{href}</>;
  return (
    <a href={href} rel="noopener noreferrer" target="_blank">
      {name ?? href}
    </a>
  );
}

function Links({ of }: { of: Record<string, string> }) {
  return (
    <span class={css.links}>
      {Object.entries(of).map(([name, href]) => (
        <Outside key={name} href={href} name={name} />
      ))}
    </span>
  );
}

function BuildRun({ profile, done }: { profile: CompanyProfile; done: () => void }) {
  const [build, setBuild] = useState<Build>();
  const [lost, setLost] = useState<string>();
  const isUnderWay = build?.status === "queued" || build?.status === "running";
  useEffect(() => {
    if (!build || !isUnderWay) return;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const next = await ask<Build>(`/company-profiles/builds/${build.run_id}`, undefined, abort.signal);
        if (abort.signal.aborted) return;
        setLost(undefined);
        setBuild({ ...next });
        if (next.status === "succeeded") done();
      } catch (error) {
        if (abort.signal.aborted) return;
        setLost((error as Refusal).message);
        // After a temporary error, the page keeps checking.
        setBuild((error as Refusal).isPassing ? { ...build } : undefined);
      }
    }, POLL_MS);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [build]);
  const action = useAction(async () => {
    setLost(undefined);
    const { run_id } = await change<{ run_id: string }>("POST", "/company-profiles/build", { website: profile.website, profile_id: profile.id });
    setBuild({ run_id, status: "queued", error: null, actions_spent: 0 });
  });
  const spent = build?.status === "succeeded" ? (build.actions_spent ? ` It cost ${counted(build.actions_spent, "Action")}.` : " It was free.") : "";
  return (
    <div class={css.build}>
      <button type="button" class={buttons.primary} disabled={action.isBusy || isUnderWay} onClick={() => action.run()}>
        Research
      </button>
      <p class={layout.quiet} role="status">
        {isUnderWay && <progress class={css.progress} aria-label="Research" />}
        {build && PROGRESS[build.status] + spent}
      </p>
      <FormError>{action.error ?? lost ?? (build?.status === "failed" && `${sentence(build.error?.message ?? "research failed")} ${build.error?.url ?? ""}`)}</FormError>
    </div>
  );
}

function Sources({ sources }: { sources: Source[] }) {
  const { timezone } = useScene();
  const columns: Column<Source>[] = [
    { name: "Page", value: ({ url }) => url, show: ({ url }) => <Outside href={url} /> },
    { name: "Status", value: ({ status, error }) => error ?? status ?? "", show: ({ status, error }) => error ?? status ?? "no response" },
    { name: "Read at", value: ({ fetched_at }) => fetched_at, show: ({ fetched_at }) => moment(fetched_at, timezone), isNumber: true },
  ];
  return (
    <Card title="Sources">
      {sources.length ? <Table caption="Sources" columns={columns} rows={sources} /> : <State title="No sources yet">Research lists the pages that it reads.</State>}
    </Card>
  );
}
