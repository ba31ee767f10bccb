import { url } from "../api/client";
import type { Breakdown, Completed, GroupRow } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { brief, count, moment, since } from "../lib/format";
import { addDays } from "../lib/days";
import { floorIn, rangeDaysOf } from "../lib/period";
import { address, setQuery } from "../lib/router";
import { Answered, Card, State, Tabs } from "../parts/Card";
import { KeptByAll } from "../parts/Kept";
import { Range } from "../parts/Range";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Tiles } from "../parts/Tiles";
import layout from "./layout.module.css";

const TYPE = /^[a-z][a-z0-9_]{0,63}$/;
/** How far back the page looks for group types. */
const TYPES_OF_DAYS = 365;

/** The group types in the project's events, except companies, which have their own page. */
function useTypes(): { types?: string[]; answer: ReturnType<typeof useAnswer<Breakdown>> } {
  const { project, today, floor } = useScene();
  const start_date = addDays(today, 1 - TYPES_OF_DAYS);
  const body = { start_date: floorIn({ start_date }, floor) ?? start_date, end_date: today, dimension: "group_type", order_by: "events", limit: 50 };
  const answer = useAnswer<Breakdown>(`/projects/${project}/analytics/breakdown`, body, project);
  const types = answer.data?.rows.map(({ value }) => value).filter((type): type is string => typeof type === "string" && type !== "company" && TYPE.test(type));
  return { types, answer };
}

export function Groups() {
  const { of, query } = useScene();
  const { types, answer } = useTypes();
  const asked = query.get("type");
  if (of && asked) return <Group type={asked} id={of} />;
  return (
    <Answered answer={answer} height={400}>
      {() =>
        types!.length ? (
          <List types={types!} type={asked && types!.includes(asked) ? asked : types![0]!} />
        ) : (
          <Card title="Groups">
            <State title="No groups yet">
              <p>
                A group is a team, a workspace or anything else you name with a <code>group_type</code> and a <code>group_id</code> on an event. Companies have their own page.
              </p>
            </State>
          </Card>
        )
      }
    </Answered>
  );
}

function List({ types, type }: { types: string[]; type: string }) {
  const { project, query } = useScene();
  const answer = useAnswer<{ groups: GroupRow[]; truncated: boolean } & Completed>(url("/groups/top", { group_type: type, range_days: rangeDaysOf(query), limit: 100 }), undefined, type);
  const columns: Column<GroupRow>[] = [
    {
      name: "Group",
      value: ({ name, group_key }) => name ?? group_key,
      show: ({ name, group_key }) => (
        <a class={layout.strong} href={address(project, "groups", group_key, { type })}>
          {name ?? group_key}
          {name && <span class={layout.sub}>{group_key}</span>}
        </a>
      ),
    },
    { name: "Events", value: ({ events }) => events, show: ({ events }) => count(events), isNumber: true },
    { name: "People", value: ({ users }) => users, show: ({ users }) => count(users), isNumber: true },
    { name: "Last seen", value: ({ last_seen }) => last_seen, show: ({ last_seen }) => since(last_seen), isNumber: true },
  ];
  const tabs = <Tabs label="Group type" options={types.map((type) => [type, type])} value={type} onSelect={(type) => setQuery({ type: type === types[0] ? null : type }, true)} />;
  const tools = (
    <>
      <Range />
      <CsvTool name={`Groups ${type}`} columns={columns} rows={answer.data?.groups} />
    </>
  );
  return (
    <Card title="Most active groups" tabs={tabs} tools={tools} isStale={answer.isStale}>
      <KeptByAll since={answer.data?.complete_from} />
      <Answered answer={answer} height={400}>
        {({ groups, truncated }) => (groups.length ? <Table caption="Groups" columns={columns} rows={groups} truncated={truncated} /> : <State title="No groups of this type in this period" />)}
      </Answered>
    </Card>
  );
}

function Group({ type, id }: { type: string; id: string }) {
  const { project, query, timezone } = useScene();
  const answer = useAnswer<GroupRow & Completed>(url("/groups/metrics", { group_type: type, group_key: id, range_days: rangeDaysOf(query) }), undefined, type + id);
  return (
    <div class={layout.stack}>
      <a class={layout.back} href={address(project, "groups", null, { type })}>
        ← All groups
      </a>
      <Card title="Group" isBare>
        <Answered answer={answer} height={180}>
          {(group) => (
            <>
              <div class={layout.identity}>
                <h2>{group.name ?? group.group_key}</h2>
                <span class={layout.badge}>{group.group_type}</span>
                {group.name && <span class={layout.quiet}>{group.group_key}</span>}
                <span class={layout.quiet}>Last seen {moment(group.last_seen, timezone)}</span>
                <KeptByAll since={group.complete_from} />
                <Range />
              </div>
              <Tiles
                isPlain
                tiles={[
                  { id: "users", name: "People", value: brief(group.users) },
                  { id: "events", name: "Events", value: brief(group.events) },
                ]}
              />
            </>
          )}
        </Answered>
      </Card>
    </div>
  );
}
