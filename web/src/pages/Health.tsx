import { url } from "../api/client";
import type { Intake, ProjectSettings } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene, isAdmin } from "../context";
import { BRIEF_AGO, brief, count, moment, share, since } from "../lib/format";
import { rangeDaysOf } from "../lib/period";
import { Answered, Card } from "../parts/Card";
import { Copyable } from "../parts/Form";
import { Range } from "../parts/Range";
import { CsvTool, Table, type Column } from "../parts/Table";
import { Tiles } from "../parts/Tiles";
import { snippet } from "./FirstSteps";
import layout from "./layout.module.css";

interface Reason {
  what: string;
  why: string;
  events: number;
}

const HOUR_MS = 3_600_000;

export function Health() {
  const { project, query, session, timezone } = useScene();
  const answer = useAnswer<Intake>(url(`/projects/${project}/intake`, { range_days: rangeDaysOf(query) }), undefined, project);
  const columns: Column<Reason>[] = [
    { name: "Reason", value: ({ what }) => what, show: ({ what, why }) => (
      <>
        <span class={layout.strong}>{what}</span>
        <span class={layout.sub}>{why}</span>
      </>
    ) },
    { name: "Events", value: ({ events }) => events, show: ({ events }) => count(events), isNumber: true },
  ];
  const rows = answer.data && reasons(answer.data);
  return (
    <div class={layout.stack}>
      <Card title="Received events" lead="By the day on which the server received them." tools={<Range />} isStale={answer.isStale}>
        <Answered answer={answer} height={120}>
          {({ recorded, duplicates, dropped, invalid, last_event_at, approximate }) => {
            const all = recorded + duplicates + invalid + sum(dropped);
            return (
              <>
                <Tiles
                  isPlain
                  tiles={[
                    { id: "recorded", name: "Recorded", value: brief(recorded), hint: all ? `${share(recorded / all)} of received` : undefined },
                    { id: "duplicates", name: "Duplicates", value: brief(duplicates), hint: "counted once" },
                    { id: "dropped", name: "Dropped", value: brief(sum(dropped)), hint: "not recorded" },
                    { id: "invalid", name: "Invalid", value: brief(invalid), hint: "rejected" },
                    {
                      id: "last_event_at",
                      name: "Last event",
                      value: last_event_at ? since(last_event_at, BRIEF_AGO) : "never",
                      hint: last_event_at ? <span class={isLate(last_event_at) ? layout.bad : layout.good}>{moment(last_event_at, timezone)}</span> : undefined,
                    },
                  ]}
                />
                {approximate && (
                  <>
                    <br />
                    <p class={layout.quiet}>The server crashed in this period. All counts except Recorded may miss up to 10 seconds of events.</p>
                  </>
                )}
              </>
            );
          }}
        </Answered>
      </Card>
      <Card title="Excluded and anonymous events" tools={<CsvTool name="Excluded and anonymous events" columns={columns} rows={rows} />}>
        <Answered answer={answer}>{() => <Table caption="Excluded and anonymous events" columns={columns} rows={rows!} />}</Answered>
      </Card>
      {answer.data && sum(answer.data.repaired) > 0 && (
        <Card title="Repaired events" lead="Events recorded with corrections. The sender's response lists each one as a warning." tools={<CsvTool name="Repaired events" columns={columns} rows={repairs(answer.data)} />}>
          <Table caption="Repaired events" columns={columns} rows={repairs(answer.data)} />
        </Card>
      )}
      {isAdmin(session) && <Install intake={answer.data} />}
    </div>
  );
}

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((sum, events) => sum + events, 0);
const isLate = (time: string) => Date.now() - Date.parse(time) > HOUR_MS;

function reasons({ duplicates, dropped, invalid, without_consent }: Intake): Reason[] {
  return [
    { what: "Duplicates", why: "An event with the same external_id was already recorded. Only the first one counts.", events: duplicates },
    { what: "Bots", why: "Crawlers, monitors and link previewers, recognized by user agent.", events: dropped.bot },
    { what: "Privacy signals", why: "Global Privacy Control or Do Not Track. The project is set to drop these events.", events: dropped.consent },
    { what: "Opted out", why: "From people whose data was erased.", events: dropped.opted_out },
    { what: "Too old", why: "From days before the project's retention period.", events: dropped.retention },
    { what: "Invalid", why: "Rejected. The sender's response explains the error.", events: invalid },
    { what: "Without consent", why: "Recorded and counted as events, but not for any visitor or session.", events: without_consent },
  ];
}

const REPAIRS: Record<string, string> = {
  clamped: "The timestamp was more than 5 minutes in the future. The time of receipt is used instead.",
  currency_unknown: "The currency isn't an ISO 4217 code. The event has no revenue.",
  field_ignored: "The field had the wrong type, or an ID was too long. The field is ignored.",
  group_ignored: "The group ID was too long, or the group type was invalid. The group is ignored.",
  metadata_trimmed: "The metadata had too many keys, too many levels or too long texts, and was shortened.",
  misspelt_field: "The sender used userId or anonymousId instead of user_id or anonymous_id. The field is ignored.",
  no_rate: "The currency has no exchange rate. Totals leave out the amount.",
  placeholder_id: "The ID was a placeholder, such as \"undefined\". The ID is ignored.",
  text_cut: "The text was too long and was shortened.",
  timestamp_in_seconds: "The timestamp was read as seconds since 1970, not milliseconds.",
  value_ignored: "The value isn't an amount. The event has no revenue.",
};

function repairs({ repaired }: Intake): Reason[] {
  const rows = Object.entries(repaired).map(([what, events]) => ({ what, why: REPAIRS[what] ?? "", events }));
  return rows.sort((a, b) => b.events - a.events);
}

function Install({ intake }: { intake?: Intake }) {
  const { project } = useScene();
  const settings = useAnswer<ProjectSettings>(`/projects/${project}`);
  return (
    <Card title="Installation" lead={intake && (intake.last_event_at ? "Events are arriving. This is the project's snippet." : "No events have arrived yet. Add this snippet to the head of your pages.")}>
      <Answered answer={settings} height={90}>
        {({ public_key }) => <Copyable name="snippet" text={snippet(public_key)} />}
      </Answered>
    </Card>
  );
}
