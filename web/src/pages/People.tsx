import { useState } from "preact/hooks";
import { Refusal, ask, url } from "../api/client";
import type { People as Answer, PersonProfile, PersonRow } from "../api/types";
import { useAnswer, withCurrency } from "../api/use";
import { useScene } from "../context";
import { brief, count, dayAt, dayRange, duration, money, moment, share, since } from "../lib/format";
import { rangeDaysOf, windowOf } from "../lib/period";
import { address, go, personAddress, setQuery } from "../lib/router";
import { Answered, Card, State } from "../parts/Card";
import { FormError, Search } from "../parts/Form";
import { KeptByAll } from "../parts/Kept";
import { PeriodPicker } from "../parts/PeriodPicker";
import { Range } from "../parts/Range";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Tiles } from "../parts/Tiles";
import layout from "./layout.module.css";

const SORTS = ["events", "revenue", "last_seen"];

export function People() {
  const { of } = useScene();
  return of ? <Person who={of} /> : <List />;
}

type Named = { user_id: string | null; email: string | null };

/** Finds a person by user ID, or else by e-mail. */
export async function lookUp(name: string): Promise<Named> {
  const [byId, byEmail]: Named[] = [{ user_id: name, email: null }, { user_id: null, email: name }];
  const exists = (who: Named) => ask<PersonProfile>(url("/identities/profile", { ...who }));
  try {
    await exists(byId!);
    return byId!;
  } catch (error) {
    if ((error as Refusal).status !== 404) throw error;
  }
  await exists(byEmail!);
  return byEmail!;
}

function List() {
  const { project, query } = useScene();
  const asked = query.get("sort") ?? "";
  const sort = SORTS.includes(asked) ? asked : "events";
  const [text, setText] = useState("");
  const answer = useAnswer<Answer>(url("/identities/top", { range_days: rangeDaysOf(query), limit: 50, sort }));
  const currency = answer.data?.currency ?? "USD";
  const [error, setError] = useState<string>();
  const find = async (event: Event) => {
    event.preventDefault();
    const name = text.trim();
    if (!name) return;
    setError(undefined);
    try {
      go(personAddress(project, await lookUp(name)));
    } catch (error) {
      setError((error as Refusal).status === 404 ? `No one has the user ID or e-mail ${name}.` : (error as Refusal).message);
    }
  };
  const columns: Column<PersonRow>[] = [
    {
      name: "Person",
      value: ({ resolved_identifier }) => resolved_identifier,
      show: (row) => (
        <a class={layout.strong} href={personAddress(project, row)}>
          {row.resolved_identifier}
          {row.user_id && row.user_id !== row.resolved_identifier && <span class={layout.sub}>{row.user_id}</span>}
        </a>
      ),
    },
    { name: "Events", value: ({ events }) => events, show: ({ events }) => count(events), isNumber: true, sort: "events" },
    { name: "Revenue", value: ({ revenue }) => revenue, show: ({ revenue }) => money(revenue, currency), isNumber: true, sort: "revenue" },
    { name: "Last seen", value: ({ last_seen }) => last_seen, show: ({ last_seen }) => since(last_seen), isNumber: true, sort: "last_seen" },
  ];
  const tools = (
    <>
      <Range />
      <CsvTool name="People" columns={columns} rows={answer.data?.identities} />
    </>
  );
  return (
    <div class={layout.stack}>
      <form class={layout.toolbar} onSubmit={find} role="search">
        <Search label="Find a person by e-mail or user ID" value={text} onText={setText} />
        <FormError>{error}</FormError>
      </form>
      <Card title="Identified people" lead="Across all projects in your organization." tools={tools} isStale={answer.isStale}>
        <KeptByAll since={answer.data?.complete_from} />
        <Answered answer={answer} height={400}>
          {({ identities, truncated }) =>
            identities.length ? (
              <Table caption="People" columns={columns} rows={identities} sorted={sort} onSort={(sort) => setQuery({ sort: sort === "events" ? null : sort }, true)} truncated={truncated} />
            ) : (
              <State title="No identified people in this period">
                <p>People appear here once an event has their user ID or e-mail.</p>
              </State>
            )
          }
        </Answered>
      </Card>
    </div>
  );
}

function Person({ who }: { who: string }) {
  const { project, query, today, timezone } = useScene();
  const { start_date, end_date } = windowOf(query, today);
  const by = query.get("by") === "email" ? "email" : "user_id";
  const params = { [by]: who, start_date, end_date };
  const answer = useAnswer<PersonProfile>(url("/identities/profile", params), undefined, by + who);
  const organization = useAnswer<Answer>(url("/identities/top", { range_days: 1, limit: 1 }));
  return (
    <div class={layout.stack}>
      <a class={layout.back} href={address(project, "people")}>
        ← All people
      </a>
      <Card title="Person" isBare>
        <Answered answer={withCurrency(answer, organization)} height={200}>
          {(person) => (
            <>
              <div class={layout.identity}>
                <h2>{who}</h2>
                <span class={layout.badge}>{by === "email" ? "e-mail" : "user ID"}</span>
                <span class={layout.quiet}>
                  First seen {dayAt(person.first_seen, timezone)}, last seen {moment(person.last_seen, timezone)}
                </span>
                <PeriodPicker />
              </div>
              <p class={layout.quiet}>{dayRange(start_date, end_date)}</p>
              <KeptByAll since={person.complete_from} />
              <br />
              <Tiles
                isPlain
                tiles={[
                  { id: "events", name: "Events", value: brief(person.events) },
                  { id: "pageviews", name: "Pageviews", value: brief(person.pageviews) },
                  { id: "sessions", name: "Sessions", value: brief(person.sessions) },
                  { id: "active_days", name: "Active days", value: brief(person.active_days) },
                  { id: "duration_avg_sec", name: "Session duration", value: duration(person.duration_avg_sec), hint: `90% within ${duration(person.duration_p90_sec)}` },
                  { id: "bounce_rate", name: "Bounce rate", value: share(person.bounce_rate) },
                  { id: "revenue", name: "Revenue", value: money(person.revenue, organization.data?.currency) },
                ]}
              />
            </>
          )}
        </Answered>
      </Card>
      {answer.data && (
        <div class={layout.two}>
          <Counts title="Pages" list="pages" path={url("/identities/top-pages", { ...params, limit: 20 })} name="url" figure="Pageviews" />
          <Counts title="Referrers" list="referrers" path={url("/identities/referrers", { ...params, limit: 20 })} name="referrer" figure="Events" />
        </div>
      )}
    </div>
  );
}

type CountRow = Record<string, string | number>;

function Counts({ title, path, list, name, figure }: { title: string; path: string; list: string; name: string; figure: string }) {
  const answer = useAnswer<Record<string, CountRow[]>>(path, undefined, title);
  const columns: Column<CountRow>[] = [
    { name: title, value: (row) => row[name], show: (row) => <span title={String(row[name])}>{String(row[name]).replace(/^https?:\/\/(www\.)?/, "")}</span> },
    { name: figure, value: ({ count }) => count, show: (row) => count(Number(row.count)), isNumber: true },
  ];
  const rows = answer.data?.[list];
  return (
    <Card title={title} tools={<CsvTool name={title} columns={columns} rows={rows} />}>
      <Answered answer={answer}>{() => (rows?.length ? <Table caption={title} columns={columns} rows={rows} /> : <State title="None in this period" />)}</Answered>
    </Card>
  );
}
