import { useEffect, useState } from "preact/hooks";
import { Refusal, ask } from "../api/client";
import type { Funnel, FunnelPerson, FunnelStep } from "../api/types";
import { isAdmin, useScene } from "../context";
import { count, counted, duration, moment, money, share } from "../lib/format";
import type { FunnelQuestion } from "../lib/funnel";
import type { Window } from "../lib/period";
import { address, go, personAddress } from "../lib/router";
import { useAction } from "../parts/Action";
import { Failure, State, Waiting, buttons } from "../parts/Card";
import { Dialog } from "../parts/Dialog";
import { FormError } from "../parts/Form";
import { CsvTool, Table, type Column } from "../parts/Table";
import { useFunnelBody } from "./Funnels";
import { lookUp } from "./People";
import css from "./Funnels.module.css";
import layout from "./layout.module.css";

/** Some of those who entered: they reached the step, or it was their last. */
interface Group {
  step: number;
  outcome: "reached" | "dropped";
  title: string;
}

interface FunnelBarsProps {
  data: Funnel;
  funnel: FunnelQuestion;
  window: Window;
}

/** A bar for each step. The hatched part of a bar stands for those who stopped before it. */
export function FunnelBars({ data, funnel, window }: FunnelBarsProps) {
  const { session } = useScene();
  const [group, setGroup] = useState<Group>();
  const mayList = isAdmin(session) && session.scopes.includes("identities:read");
  const most = data.steps[0]!.entities;
  return (
    <>
      <ol class={css.bars} aria-label="Funnel">
        {data.steps.map((step, index) => (
          <Bar key={index} {...{ step, index, most, currency: data.currency }} before={data.steps[index - 1]} onList={mayList ? setGroup : undefined} />
        ))}
      </ol>
      {group && <PeopleDialog group={group} funnel={funnel} window={window} onClose={() => setGroup(undefined)} />}
    </>
  );
}

interface BarProps {
  step: FunnelStep;
  index: number;
  most: number;
  currency?: string;
  before?: FunnelStep;
  onList?: (group: Group) => void;
}

function Bar({ step, index, most, currency, before, onList }: BarProps) {
  const { name, entities, rate, step_rate, median_sec, p75_sec, revenue } = step;
  const reached: Group = { step: index + 1, outcome: "reached", title: `Reached ${name}` };
  const stopped: Group | undefined = before && { step: index, outcome: "dropped", title: `Stopped after ${before.name}` };
  const width = (some: number) => ({ width: `${(some / most) * 100}%` });
  // The words beside the bar have the same lists for keyboards.
  const part = (look: string, group: Group, some: number, title: string) => <span class={look} style={width(some)} data-list={!!onList} title={title} onClick={() => onList?.(group)} />;
  const words = (text: string, group: Group) =>
    onList && text ? (
      <button type="button" class={css.list} onClick={() => onList(group)}>
        {text}
      </button>
    ) : (
      text
    );
  return (
    <li class={css.barRow}>
      <div class={css.barHead}>
        <span class={css.barName}>
          {index + 1}. {name}
        </span>
        <span class={css.barCount}>
          {words(count(entities), reached)} <span class={layout.quiet}>{share(rate)}</span>
        </span>
      </div>
      <div class={css.track}>
        {part(css.reached!, reached, entities, `${count(entities)} reached ${name}`)}
        {before && before.dropped > 0 && part(css.gap!, stopped!, before.dropped, `${count(before.dropped)} stopped before`)}
      </div>
      <div class={css.facts}>
        {before && <span>{words(`${count(before.dropped)} stopped before`, stopped!)}</span>}
        {step_rate !== null && <span>{share(step_rate)} of the step before</span>}
        {median_sec !== null && <span title={p75_sec === null ? undefined : `Three in four within ${duration(p75_sec)}`}>half within {duration(median_sec)}</span>}
        {revenue !== undefined && revenue !== 0 && <span>{money(revenue, currency)}</span>}
      </div>
    </li>
  );
}

const PAGE = 50;

interface PeoplePage {
  people: FunnelPerson[];
  next: string | null;
}

function PeopleDialog({ group, funnel, window, onClose }: Omit<FunnelBarsProps, "data"> & { group: Group; onClose: () => void }) {
  const { project, timezone } = useScene();
  const body = useFunnelBody(funnel, window);
  const [shown, setShown] = useState<PeoplePage>();
  const [error, setError] = useState<Refusal>();
  const load = async (cursor?: string | null) => {
    setError(undefined);
    try {
      const page = await ask<PeoplePage>(`/projects/${project}/analytics/funnel/people`, { ...body, step: group.step, outcome: group.outcome, limit: PAGE, ...(cursor && { cursor }) });
      setShown((before) => (cursor && before ? { ...page, people: [...before.people, ...page.people] } : page));
    } catch (error) {
      setError(error as Refusal);
    }
  };
  useEffect(() => void load(), []);
  const columns: Column<FunnelPerson>[] = [
    { name: funnel.level === "account" ? "Account" : "Person", value: ({ resolved_identifier }) => resolved_identifier ?? NO_ID, show: (person) => <PersonLink person={person} /> },
    { name: "Time of the step", value: ({ at }) => at, show: ({ at }) => moment(at, timezone), isNumber: true },
  ];
  return (
    <Dialog title={group.title} onClose={onClose}>
      {!shown && (error ? <Failure error={error} again={() => load()} /> : <Waiting height={240} />)}
      {shown && (
        <>
          <div class={css.facts}>
            <span role="status">{counted(shown.people.length, "row")}, latest first</span>
            <CsvTool name={group.title} columns={columns} rows={shown.people} />
          </div>
          {shown.people.length ? <Table caption={group.title} columns={columns} rows={shown.people} /> : <State title="Nobody" />}
          <FormError>{error?.message}</FormError>
          {shown.next && (
            <button type="button" class={buttons.plain} onClick={() => load(shown.next)}>
              Load more
            </button>
          )}
        </>
      )}
    </Dialog>
  );
}

/** The name of a visitor without any id. */
const NO_ID = "Visitor without an ID";

/** Leads to the page of a company, or of a person who has a user ID or an e-mail. */
function PersonLink({ person: { company_id, resolved_identifier: name } }: { person: FunnelPerson }) {
  const { project } = useScene();
  const find = useAction(async () => {
    try {
      go(personAddress(project, await lookUp(name ?? "")));
    } catch (error) {
      throw (error as Refusal).status === 404 ? new Refusal(404, "not_found", "This visitor has no user ID and no e-mail, so no page.") : error;
    }
  });
  if (!name) return <>{NO_ID}</>;
  if (company_id) return <a href={address(project, "companies", company_id)}>{name}</a>;
  return (
    <>
      <button type="button" class={css.list} disabled={find.isBusy} onClick={() => find.run()}>
        {name}
      </button>
      <FormError>{find.error}</FormError>
    </>
  );
}
