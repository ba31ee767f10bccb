// Funnels in the URL: one `s=kind~value~name` for each step, and the rules by their names.

import { decode, encode, readJson, writeClause, writeJson, type Clause } from "./filters";
import { KINDS, type Condition, type Kind } from "./people";

/** A step of the API. It has one of `event_name`, `page`, `goal`. */
export interface Step extends Partial<Record<Kind, string>> {
  name?: string;
  filters?: Clause[];
}

export type Unit = "minutes" | "hours" | "days";
export type ChainLength = Partial<Record<Unit, number>> | "session";

/** What a funnel asks, as the API has it. */
export interface FunnelQuestion {
  steps: Step[];
  within?: ChainLength | null;
  order?: string | null;
  level?: string | null;
  breakdown?: string | null;
}

/** A funnel with a name. */
export interface KeptFunnel extends FunnelQuestion {
  funnel_id: string;
  name: string;
  filters: Clause[];
  people: Condition[];
  segment: string | null;
}

export const ORDERS: [string, string][] = [
  ["loose", "In this order"],
  ["strict", "In this order, nothing between"],
  ["any", "In any order"],
];
export const LEVELS: [string, string][] = [
  ["identity", "People"],
  ["account", "Accounts"],
];
export const UNITS: [Unit | "session", string][] = [
  ["minutes", "Minutes"],
  ["hours", "Hours"],
  ["days", "Days"],
  ["session", "The same session"],
];
export const MOST_STEPS = 12;
export const DEFAULT_DAYS = 7;
const MOST_MINUTES = 90 * 24 * 60;
const MINUTES: Record<Unit, number> = { minutes: 1, hours: 60, days: 24 * 60 };

/** The most of a unit that the server accepts. */
export const mostOf = (unit: Unit) => MOST_MINUTES / MINUTES[unit];

export const kindOf = (step: Step): Kind => KINDS.find(([kind]) => step[kind] !== undefined)?.[0] ?? "event_name";

export function writeStep(step: Step): string {
  const kind = kindOf(step);
  return step.filters?.length ? writeJson(step) : encode([kind, step[kind] ?? "", ...(step.name ? [step.name] : [])]);
}

function readStep(text: string): Step | null {
  const whole = readJson<Step>(text, "filters");
  if (whole) return whole;
  const [kind, value, name] = decode(text);
  if (!KINDS.some(([id]) => id === kind) || !value) return null;
  return { [kind as Kind]: value, ...(name && { name }) };
}

export const stepsOf = (query: URLSearchParams) => query.getAll("s").map(readStep).filter((step) => step !== null).slice(0, MOST_STEPS);

function readLength(text: string | null): ChainLength {
  const [, number, unit] = /^(\d{1,6})(minutes|hours|days)$/.exec(text ?? "") ?? [];
  if (text === "session") return text;
  const isValid = unit && Number(number) >= 1 && Number(number) <= mostOf(unit as Unit);
  return isValid ? { [unit]: Number(number) } : { days: DEFAULT_DAYS };
}

export function lengthOf(within: ChainLength | null | undefined): { unit: Unit | "session"; number: number } {
  if (within === "session") return { unit: within, number: DEFAULT_DAYS };
  const [unit, number] = (Object.entries(within ?? {})[0] ?? ["days", DEFAULT_DAYS]) as [Unit, number];
  return { unit, number };
}

const known = (asked: string | null, all: [string, string][]) => (all.some(([id]) => id === asked) ? asked! : all[0]![0]);

/** The funnel in the URL. */
export function funnelOf(query: URLSearchParams): FunnelQuestion {
  return {
    steps: stepsOf(query),
    within: readLength(query.get("within")),
    order: known(query.get("order"), ORDERS),
    level: known(query.get("level"), LEVELS),
    breakdown: query.get("breakdown"),
  };
}

/** A kept funnel as parameters of the URL. */
export function paramsOf({ funnel_id, steps, within, order, level, breakdown, filters, people, segment }: KeptFunnel) {
  const { unit, number } = lengthOf(within);
  return {
    funnel: funnel_id,
    s: steps.map(writeStep),
    within: unit === "session" ? unit : `${number}${unit}`,
    order: order ?? null,
    level: level ?? null,
    breakdown: breakdown ?? null,
    f: filters.map(writeClause),
    p: people.map(writeJson),
    segment,
  };
}

/** The name of a step that has none. */
export const stepName = (step: Step, goals: Map<string, string>) => step.name ?? (step.goal !== undefined ? (goals.get(step.goal) ?? "a goal") : (step.event_name ?? step.page ?? ""));
