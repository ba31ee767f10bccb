import { useState } from "preact/hooks";
import { url } from "../api/client";
import type { People as Answer, PersonProfile, PersonRow } from "../api/types";
import { useAnswer, withCurrency } from "../api/use";
import { useScene } from "../context";
import { brief, count, dayRange, duration, longDay, money, moment, share, since } from "../lib/format";
import { rangeDaysOf, windowOf } from "../lib/period";
import { address, go, setQuery } from "../lib/router";
import { Answered, Card, State } from "../parts/Card";
import { Search } from "../parts/Form";
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

function List() {
  const { project, query } = useScene();
  const asked = query.get("sort") ?? "";
  const sort = SORTS.includes(asked) ? asked : "events";
  const [text, setText] = useState("");
  const answer = useAnswer<Answer>(url("/identities/top", { range_days: rangeDaysOf(query), limit: 50, sort }));
  const currency = answer.data?.currency ?? "USD";
  const find = (event: Event) => {
    event.preventDefault();
    if (text.trim()) go(address(project, "people", text.trim()));
  };
  const columns: Column<PersonRow>[] = [
    {
      name: "Person",
      value: ({ resolved_identifier }) => resolved_identifier,
      show: ({ resolved_identifier, user_id }) => (
        <a class={layout.strong} href={address(project, "people", resolved_identifier)}>
          {resolved_identifier}
          {user_id && user_id !== resolved_identifier && <span class={layout.sub}>{user_id}</span>}
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
        <Search label="Find by e-mail or user id" value={text} onText={setText} />
      </form>
      <Card title="Identified people" lead="Over all projects of the organization." tools={tools} isStale={answer.isStale}>
        <Answered answer={answer} height={400}>
          {({ identities, truncated }) =>
            identities.length ? (
              <Table caption="People" columns={columns} rows={identities} sorted={sort} onSort={(sort) => setQuery({ sort: sort === "events" ? null : sort }, true)} truncated={truncated} />
            ) : (
              <State title="Nobody was identified in these days">
                <p>People are known once an event has their user id.</p>
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
  // Whoever has an e-mail address is shown by it.
  const key = who.includes("@") ? "email" : "user_id";
  const params = { [key]: who, start_date, end_date };
  const answer = useAnswer<PersonProfile>(url("/identities/profile", params), undefined, who);
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
                <span class={layout.quiet}>
                  First seen {longDay(person.first_seen.slice(0, 10))}, last seen {moment(person.last_seen, timezone)}
                </span>
                <PeriodPicker />
              </div>
              <p class={layout.quiet}>{dayRange(start_date, end_date)}</p>
              <br />
              <Tiles
                isPlain
                tiles={[
                  { id: "events", name: "Events", value: brief(person.events) },
                  { id: "pageviews", name: "Pageviews", value: brief(person.pageviews) },
                  { id: "sessions", name: "Sessions", value: brief(person.sessions) },
                  { id: "active_days", name: "Active days", value: brief(person.active_days) },
                  { id: "duration_avg_sec", name: "Session duration", value: duration(person.duration_avg_sec), hint: `90% under ${duration(person.duration_p90_sec)}` },
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
          <Counts title="Pages" list="pages" path={url("/identities/top-pages", { ...params, limit: 20 })} name="url" />
          <Counts title="Referrers" list="referrers" path={url("/identities/referrers", { ...params, limit: 20 })} name="referrer" />
        </div>
      )}
    </div>
  );
}

type CountRow = Record<string, string | number>;

function Counts({ title, path, list, name }: { title: string; path: string; list: string; name: string }) {
  const answer = useAnswer<Record<string, CountRow[]>>(path, undefined, title);
  const columns: Column<CountRow>[] = [
    { name: title, value: (row) => row[name], show: (row) => <span title={String(row[name])}>{String(row[name]).replace(/^https?:\/\/(www\.)?/, "")}</span> },
    { name: "Events", value: ({ count }) => count, show: (row) => count(Number(row.count)), isNumber: true },
  ];
  const rows = answer.data?.[list];
  return (
    <Card title={title} tools={<CsvTool name={title} columns={columns} rows={rows} />}>
      <Answered answer={answer}>{() => (rows?.length ? <Table caption={title} columns={columns} rows={rows} /> : <State title="None in these days" />)}</Answered>
    </Card>
  );
}
