import { useState } from "preact/hooks";
import { Refusal, ask, url } from "../api/client";
import type { CompanyFigures, CompanyRow, Completed, UserRow } from "../api/types";
import { useAnswer, withCurrency } from "../api/use";
import { isAdmin, useScene } from "../context";
import { brief, briefMoney, count, dayAt, money, moment, since } from "../lib/format";
import { rangeDaysOf } from "../lib/period";
import { address, go, personAddress } from "../lib/router";
import { Answered, Card, State } from "../parts/Card";
import { FormError, Search } from "../parts/Form";
import { KeptByAll } from "../parts/Kept";
import { Range } from "../parts/Range";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Tiles } from "../parts/Tiles";
import { CompanyProfilePage, CompanyProfiles, isProfile } from "./CompanyProfiles";
import layout from "./layout.module.css";

/** The lead of cards with organization-wide answers. */
const EVERYWHERE = "Across all projects in your organization.";

export function Companies() {
  const { of } = useScene();
  if (of) return isProfile(of) ? <CompanyProfilePage id={of} /> : <Company id={of} />;
  return <List />;
}

function List() {
  const { project, query, session } = useScene();
  const range_days = rangeDaysOf(query);
  const answer = useAnswer<{ companies: CompanyRow[]; truncated: boolean } & Completed>(url("/companies/top", { range_days, limit: 50 }));
  const organization = useAnswer<CompanyFigures>(answer.data?.companies[0] ? url(`/companies/${answer.data.companies[0].company_id}/metrics`, { range_days: 1 }) : null);
  const currency = organization.data?.currency;
  const columns: Column<CompanyRow>[] = [
    {
      name: "Company",
      value: ({ name, domain, company_id }) => name ?? domain ?? company_id,
      show: ({ name, domain, company_id }) => (
        <a class={layout.strong} href={address(project, "companies", company_id, range(query))}>
          {name ?? domain ?? company_id}
          {name && domain && <span class={layout.sub}>{domain}</span>}
        </a>
      ),
    },
    { name: "Events", value: ({ events }) => events, show: ({ events }) => count(events), isNumber: true },
    { name: "People", value: ({ users }) => users, show: ({ users }) => count(users), isNumber: true },
    { name: "Revenue", value: ({ revenue }) => revenue, show: ({ revenue }) => money(revenue, currency), isNumber: true },
    { name: "Last seen", value: ({ last_seen }) => last_seen, show: ({ last_seen }) => since(last_seen), isNumber: true },
  ];
  const tools = (
    <>
      <Range />
      <CsvTool name="Companies" columns={columns} rows={answer.data?.companies} />
    </>
  );
  return (
    <div class={layout.stack}>
      <Lookup />
      <Card title="Most active companies" lead={EVERYWHERE} tools={tools} isStale={answer.isStale}>
        <KeptByAll since={answer.data?.complete_from} />
        <Answered answer={withCurrency(answer, organization)} height={400}>
          {({ companies, truncated }) =>
            companies.length ? (
              <Table caption="Companies" columns={columns} rows={companies} truncated={truncated} />
            ) : (
              <State title="No companies in this period">
                <p>
                  headcount recognizes a company by the e-mail domain of its people, or by the <code>group_id</code> of an event.
                </p>
              </State>
            )
          }
        </Answered>
      </Card>
      {isAdmin(session) && <CompanyProfiles />}
    </div>
  );
}

const range = (query: URLSearchParams): Record<string, string> => (query.get("range_days") ? { range_days: query.get("range_days")! } : {});

function Lookup() {
  const { project, query } = useScene();
  const [domain, setDomain] = useState("");
  const [error, setError] = useState<string>();
  const find = async (event: Event) => {
    event.preventDefault();
    if (!domain.trim()) return;
    setError(undefined);
    try {
      const { company_id } = await ask<CompanyFigures>(url("/companies/lookup", { domain: domain.trim() }));
      go(address(project, "companies", company_id, range(query)));
    } catch (error) {
      setError((error as Refusal).status === 404 ? `No company has the domain ${domain.trim()}.` : (error as Refusal).message);
    }
  };
  return (
    <form class={layout.toolbar} onSubmit={find} role="search">
      <Search label="Find a company by domain" value={domain} onText={setDomain} />
      <FormError>{error}</FormError>
    </form>
  );
}

function Company({ id }: { id: string }) {
  const { project, query, timezone } = useScene();
  const range_days = rangeDaysOf(query);
  const path = `/companies/${encodeURIComponent(id)}`;
  const answer = useAnswer<CompanyFigures>(url(`${path}/metrics`, { range_days }), undefined, id);
  return (
    <div class={layout.stack}>
      <a class={layout.back} href={address(project, "companies", null, range(query))}>
        ← All companies
      </a>
      <Card title="Company" isBare>
        <Answered answer={answer} height={180}>
          {(company) => (
            <>
              <div class={layout.identity}>
                <h2>{company.name ?? company.domain ?? company.company_id}</h2>
                {company.name && company.domain && <span class={layout.quiet}>{company.domain}</span>}
                <span class={layout.quiet}>
                  First seen {dayAt(company.first_seen, timezone)}, last seen {moment(company.last_seen, timezone)}
                </span>
                <KeptByAll since={company.complete_from} />
                <Range />
              </div>
              <Tiles
                isPlain
                tiles={[
                  { id: "users", name: "People", value: brief(company.users) },
                  { id: "sessions", name: "Sessions", value: brief(company.sessions) },
                  { id: "events", name: "Events", value: brief(company.events) },
                  { id: "revenue", name: "Revenue", value: briefMoney(company.revenue, company.currency) },
                  { id: "orders", name: "Orders", value: brief(company.orders) },
                ]}
              />
            </>
          )}
        </Answered>
      </Card>
      {answer.data && <TopUsers path={path} range_days={range_days} />}
    </div>
  );
}

function TopUsers({ path, range_days }: { path: string; range_days: number }) {
  const { project } = useScene();
  const answer = useAnswer<{ users: UserRow[]; truncated: boolean } & Completed>(url(`${path}/top-users`, { range_days, limit: 50 }), undefined, path);
  const columns: Column<UserRow>[] = [
    {
      name: "Person",
      value: ({ resolved_identifier }) => resolved_identifier,
      show: (row) => (
        <a class={layout.strong} href={personAddress(project, row)}>
          {row.resolved_identifier}
        </a>
      ),
    },
    { name: "Events", value: ({ events }) => events, show: ({ events }) => count(events), isNumber: true },
    { name: "Last seen", value: ({ last_seen }) => last_seen, show: ({ last_seen }) => since(last_seen), isNumber: true },
  ];
  return (
    <Card title="People" tools={<CsvTool name="People of the company" columns={columns} rows={answer.data?.users} />} isStale={answer.isStale}>
      <Answered answer={answer}>
        {({ users, truncated }) =>
          users.length ? <Table caption="People" columns={columns} rows={users} truncated={truncated} /> : <State title="No identified people in this period" />
        }
      </Answered>
    </Card>
  );
}
