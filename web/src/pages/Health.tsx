import { url } from "../api/client";
import type { Intake, ProjectSettings } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene, isAdmin } from "../context";
import { brief, count, moment, share, since } from "../lib/format";
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
    { name: "What", value: ({ what }) => what, show: ({ what, why }) => (
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
      <Card title="What came in" lead="By the day of receipt." tools={<Range />} isStale={answer.isStale}>
        <Answered answer={answer} height={120}>
          {({ recorded, duplicates, dropped, invalid, last_event_at, approximate }) => {
            const all = recorded + duplicates + invalid + sum(dropped);
            return (
              <>
                <Tiles
                  isPlain
                  tiles={[
                    { id: "recorded", name: "Recorded", value: brief(recorded), hint: all ? `${share(recorded / all)} of all` : undefined },
                    { id: "duplicates", name: "Duplicates", value: brief(duplicates), hint: "counted once" },
                    { id: "dropped", name: "Dropped", value: brief(sum(dropped)), hint: "by policy" },
                    { id: "invalid", name: "Refused", value: brief(invalid), hint: "not valid" },
                    {
                      id: "last_event_at",
                      name: "Last event",
                      value: last_event_at ? since(last_event_at) : "never",
                      hint: last_event_at ? <span class={isLate(last_event_at) ? layout.bad : layout.good}>{moment(last_event_at, timezone)}</span> : undefined,
                    },
                  ]}
                />
                {approximate && (
                  <>
                    <br />
                    <p class={layout.quiet}>The server crashed in these days: all but the recorded events may lack up to 10 seconds.</p>
                  </>
                )}
              </>
            );
          }}
        </Answered>
      </Card>
      <Card title="Not counted, or not as usual" tools={<CsvTool name="Not counted" columns={columns} rows={rows} />}>
        <Answered answer={answer}>{() => <Table caption="Not counted, or not as usual" columns={columns} rows={rows!} />}</Answered>
      </Card>
      {answer.data && sum(answer.data.repaired) > 0 && (
        <Card title="Repaired" lead="These events count. The answer to the sender says the same, as warnings." tools={<CsvTool name="Repaired" columns={columns} rows={repairs(answer.data)} />}>
          <Table caption="Repaired" columns={columns} rows={repairs(answer.data)} />
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
    { what: "Duplicates", why: "An event with the same external_id was there already. The first one counts.", events: duplicates },
    { what: "Bots", why: "Crawlers, monitors and previewers, by their user agent.", events: dropped.bot },
    { what: "Signals", why: "Global Privacy Control or Do Not Track, where the project drops them.", events: dropped.consent },
    { what: "Opted out", why: "Of people whose data was erased.", events: dropped.opted_out },
    { what: "Too old", why: "Of days that the project no longer keeps.", events: dropped.retention },
    { what: "Refused", why: "Not valid: the answer to the sender says what was wrong.", events: invalid },
    { what: "Without consent", why: "Recorded as events, and counted as nobody's.", events: without_consent },
  ];
}

const REPAIRS: Record<string, string> = {
  clamped: "The time lay more than 5 minutes ahead. The time of receipt counts.",
  currency_unknown: "The currency is no ISO 4217 code. The event has no money.",
  field_ignored: "The field had another type than it can have, or an id was too long. It counts as absent.",
  group_ignored: "The group's id is too long, or its type no name. The event is in no group.",
  metadata_trimmed: "There were too many keys, too many levels, or too long texts.",
  misspelt_field: "userId or anonymousId stood in place of user_id or anonymous_id, and was ignored.",
  no_rate: "The currency has no rate. Totals leave the money out.",
  placeholder_id: "The id was what programs write of users whom they don't know, such as \"undefined\". It counts as absent.",
  text_cut: "The text was too long, and was cut.",
  timestamp_in_seconds: "The time was read as seconds since 1970.",
  value_ignored: "The value is no amount. The event has no money.",
};

function repairs({ repaired }: Intake): Reason[] {
  const rows = Object.entries(repaired).map(([what, events]) => ({ what, why: REPAIRS[what] ?? "", events }));
  return rows.sort((a, b) => b.events - a.events);
}

function Install({ intake }: { intake?: Intake }) {
  const { project } = useScene();
  const settings = useAnswer<ProjectSettings>(`/projects/${project}`);
  const works = intake?.last_event_at;
  return (
    <Card title="Installation" lead={works ? "Events arrive. This is the snippet of the project." : "No event has arrived yet. Put this into the head of your pages."}>
      <Answered answer={settings} height={90}>
        {({ public_key }) => <Copyable name="the snippet" text={snippet(public_key)} />}
      </Answered>
    </Card>
  );
}
