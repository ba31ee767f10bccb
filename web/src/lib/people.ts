// Conditions on what people did, in the URL: one `p=did~1~window~goal~goal_id` for each.

import { clauseText, clausesOf, decode, encode, readJson, type Clause, type Filter } from "./filters";
import { counted } from "./format";

export type Within = "window" | "ever" | { days: number };

/** A condition of the API. */
export interface Condition {
  did?: Did;
  did_not?: Did;
  at_least?: number;
  within?: Within;
}

interface Did {
  event_name?: string;
  filters?: Clause[];
  goal?: string;
}

/** The conditions that the page can make. */
export interface Asked {
  part: "did" | "did_not";
  atLeast: number;
  within: Within;
  kind: Kind;
  value: string;
}

export type Kind = "event_name" | "page" | "goal";

export const KINDS: [Kind, string][] = [
  ["event_name", "Event"],
  ["page", "Page"],
  ["goal", "Goal"],
];
export const MOST_AT_LEAST = 1_000;
export const MOST_DAYS = 365;
const MOST = 5;
/** The names of pageviews, as the server has them. */
const PAGEVIEWS = ["pageview", "page_view", "$pageview", "page"];

const isPage = (clauses: Clause[] = []) => clauses.length === 2 && "field" in clauses[0]! && clauses[0].field === "name" && "field" in clauses[1]! && clauses[1].operator === "matches";

export function conditionOf({ part, atLeast, within, kind, value }: Asked): Condition {
  const pages = (): Clause[] => [{ field: "name", operator: "is", value: PAGEVIEWS }, { field: "path", operator: "matches", value }];
  return { [part]: kind === "page" ? { filters: pages() } : { [kind]: value }, at_least: atLeast, within };
}

export function writeAsked({ part, atLeast, within, kind, value }: Asked): string {
  return encode([part, String(atLeast), typeof within === "object" ? String(within.days) : within, kind, value]);
}

function readAsked(text: string): Asked | null {
  const [part, least, within, kind, value] = decode(text);
  const isWhole = (text: string | undefined, most: number) => /^[1-9]\d*$/.test(text ?? "") && Number(text) <= most;
  if ((part !== "did" && part !== "did_not") || !isWhole(least, MOST_AT_LEAST) || !KINDS.some(([id]) => id === kind) || !value) return null;
  if (within !== "window" && within !== "ever" && !isWhole(within, MOST_DAYS)) return null;
  return { part, atLeast: Number(least), within: within === "window" || within === "ever" ? within : { days: Number(within) }, kind: kind as Kind, value };
}

/** The conditions in the URL, and their texts there. */
export function conditionsOf(query: URLSearchParams): { condition: Condition; text: string }[] {
  const read = (text: string) => {
    const asked = readAsked(text);
    return asked ? conditionOf(asked) : readJson<Condition>(text, "did", "did_not");
  };
  const all = query.getAll("p").map((text) => ({ condition: read(text)!, text }));
  return all.filter(({ condition }) => condition !== null).slice(0, MOST);
}

/** A condition in words. `goals` are the names of goals by their ids. */
export function conditionText({ did, did_not, at_least: least = 1, within = "window" }: Condition, goals: Map<string, string>): string {
  const { event_name, goal, filters } = did ?? did_not ?? {};
  const path = isPage(filters) ? (filters![1] as Filter).value : undefined;
  const [past, base] = goal ? ["reached", "reach"] : path ? ["visited", "visit"] : ["did", "do"];
  const events = [event_name, goal && (goals.get(goal) ?? "a goal"), path ?? filters?.map(clauseText).join(" and ")].filter(Boolean).join(" and ") || "anything";
  const days = typeof within === "object" ? `in the last ${counted(within.days, "day")}` : within === "ever" ? "at any time" : "in this period";
  if (did) return `${past} ${events} ${least > 1 ? `at least ${least} times ` : ""}${days}`;
  return least > 1 ? `${past} ${events} fewer than ${least} times ${days}` : `did not ${base} ${events} ${days}`;
}

/** The choice of events in the URL, as a part of the body of a question. */
export interface Choice {
  filters: Clause[];
  people?: Condition[];
  segment?: string;
}

export function choiceOf(query: URLSearchParams): Choice {
  const people = conditionsOf(query).map(({ condition }) => condition);
  const segment = query.get("segment");
  return { filters: clausesOf(query).map(({ clause }) => clause), ...(people.length && { people }), ...(segment && { segment }) };
}

/** Whether the URL chooses some of the events. */
export const isChosen = ({ filters, people, segment }: Choice) => filters.length > 0 || !!people || !!segment;
