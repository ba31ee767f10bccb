import { useState } from "preact/hooks";
import { url } from "../api/client";
import type { Breakdown } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { kept, windowOf } from "../lib/period";
import { BreakdownDialog, Rows, columnsOf, listed, useBreakdown, type Dimension } from "../parts/BreakdownCard";
import { Answered, Card, State, Tool } from "../parts/Card";
import { Select } from "../parts/Form";
import { CsvTool } from "../parts/Table";
import { EVENTS } from "./dimensions";
import css from "./EventsCard.module.css";

const SHORT = 8;

interface Fields {
  fields: { field: string; types: string[]; events: number }[];
}

/** Events by name, beside the values of one of their properties. */
export function EventsCard() {
  const [isOpen, setOpen] = useState(false);
  const names = useBreakdown(EVENTS, { limit: SHORT });
  const tools = (
    <>
      <CsvTool name="Events" columns={columnsOf(EVENTS, names.data)} rows={names.data?.rows} />
      <Tool icon="expand" label="Show all events" onClick={() => setOpen(true)} />
    </>
  );
  return (
    <Card title="Events" tools={tools} isStale={names.isStale} isBusy={names.isLoading}>
      <div class={css.columns}>
        <div>
          <Answered answer={names} height={260}>
            {(data) => (data.rows.length ? <Rows dimension={EVENTS} rows={data.rows} data={data} onMore={() => setOpen(true)} /> : <State title="No data in this period" />)}
          </Answered>
        </div>
        <Properties names={names.data} />
      </div>
      {isOpen && <BreakdownDialog title="Events" dimension={EVENTS} onClose={() => setOpen(false)} />}
    </Card>
  );
}

function Properties({ names }: { names?: Breakdown }) {
  const { project, query, today, session, floor } = useScene();
  const days = kept(windowOf(query, today), floor);
  // A share shows no metadata: it may contain names.
  const path = session.share || !days ? null : url(`/projects/${project}/analytics/fields`, { start_date: days.start_date, end_date: days.end_date, limit: 100 });
  const fields = useAnswer<Fields>(path, undefined, project);
  const [field, setField] = useState("");
  const [event, setEvent] = useState("");
  const [isOpen, setOpen] = useState(false);
  const known = fields.data?.fields.map(({ field }) => field) ?? [];
  const chosen = known.includes(field) ? field : known[0];
  if (session.share || (!fields.data && fields.error)) return null;
  if (fields.data && !chosen) return <State title="No properties">Send metadata with your events, such as a plan or a category.</State>;
  const dimension: Dimension = { id: "property", name: chosen?.replace(/^metadata\./, "") ?? "", field: chosen ?? "", figure: "events", event: event || undefined };
  return (
    <div>
      <div class={css.pick}>
        <Select label="Property" value={chosen ?? ""} options={known.map((field) => [field, field.replace(/^metadata\./, "")])} onSelect={setField} />
        <Select label="Event" value={event} options={[["", "All events"], ...(names?.rows ?? []).map(({ value }): [string, string] => [String(value), String(value)])]} onSelect={setEvent} />
      </div>
      {chosen && <Values dimension={dimension} onMore={() => setOpen(true)} />}
      {isOpen && <BreakdownDialog title={dimension.name} dimension={dimension} onClose={() => setOpen(false)} />}
    </div>
  );
}

function Values({ dimension, onMore }: { dimension: Dimension; onMore: () => void }) {
  const answer = useBreakdown(dimension, { limit: SHORT });
  return (
    <Answered answer={answer} height={200}>
      {(data) => {
        const rows = listed(data, dimension).slice(0, SHORT - 2);
        return rows.length ? <Rows dimension={dimension} rows={rows} data={data} onMore={onMore} /> : <State title="No events with this property" />;
      }}
    </Answered>
  );
}
