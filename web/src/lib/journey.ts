// Journeys in the URL, and where the flow draws them.

import type { JourneyNode, Journeys } from "../api/types";
import { decode, encode } from "./filters";

export interface Grouping {
  name: string;
  pattern: string;
}

export interface JourneyQuestion {
  by: string;
  from?: string;
  to?: string;
  depth: number;
  rows: number;
  groups?: Grouping[];
}

export const VALUES: [string, string][] = [
  ["path", "Pages"],
  ["event_name", "Events"],
  ["path_or_event", "Pages and events"],
];
export const DEPTHS = [2, 3, 4, 5, 6, 7, 8, 9, 10];
export const ROWS = [5, 10, 20, 50];
const DEFAULT_DEPTH = 5;
const DEFAULT_ROWS = 10;
export const MOST_GROUPS = 50;

export const writeGrouping = ({ name, pattern }: Grouping) => encode([name, pattern]);

export function groupingsOf(query: URLSearchParams): Grouping[] {
  const all = query.getAll("g").map((text) => decode(text));
  return all.filter(([name, pattern]) => name && pattern).map(([name, pattern]) => ({ name: name!, pattern: pattern! })).slice(0, MOST_GROUPS);
}

/** The question in the URL. `begin` and `end` are the pages at which journeys begin or end. */
export function journeyOf(query: URLSearchParams): JourneyQuestion {
  const number = (name: string, all: number[], otherwise: number) => (all.includes(Number(query.get(name))) ? Number(query.get(name)) : otherwise);
  const by = VALUES.some(([id]) => id === query.get("by")) ? query.get("by")! : "path";
  const [from, to] = [query.get("begin"), query.get("end")];
  const groups = by === "event_name" ? [] : groupingsOf(query);
  return {
    by,
    ...(from ? { from } : to && { to }),
    depth: number("depth", DEPTHS, DEFAULT_DEPTH),
    rows: number("rows", ROWS, DEFAULT_ROWS),
    ...(groups.length && { groups }),
  };
}

export interface Box {
  step: number;
  node: JourneyNode;
  x: number;
  y: number;
  height: number;
}

export interface Band {
  from: Box;
  to: Box;
  sessions: number;
  /** Where it leaves one box and enters the other, and its height. */
  fromY: number;
  toY: number;
  height: number;
}

export interface Flow {
  boxes: Box[];
  bands: Band[];
  height: number;
}

const GAP = 14;
const LEAST = 3;

/**
 * Boxes for nodes and bands for links. `width` is the distance of steps. Steps that are read
 * backwards run to the left.
 */
export function flowOf({ steps, links, sessions }: Pick<Journeys, "steps" | "links" | "sessions">, isBackwards: boolean, width: number, inner: number): Flow {
  const scale = inner / Math.max(1, sessions);
  const boxes = steps.flatMap(({ nodes }, index) => {
    const x = (isBackwards ? steps.length - 1 - index : index) * width;
    let y = 0;
    return nodes.map((node): Box => {
      const height = Math.max(LEAST, node.sessions * scale);
      const box = { step: index + 1, node, x, y, height };
      y += height + GAP;
      return box;
    });
  });
  const find = (step: number, value: string | null) => boxes.find((box) => box.step === step && box.node.value === value)!;
  const ends = links.map(({ step, from, to, sessions }) => ({ from: find(step - 1, from), to: find(step, to), sessions }));
  // On both sides, bands stand in the order of the boxes they lead to.
  const starts = new Map<(typeof ends)[number], { fromY: number; toY: number }>();
  const stack = (side: "from" | "to", other: "from" | "to", place: "fromY" | "toY") => {
    const used = new Map<Box, number>();
    for (const end of ends.toSorted((one, two) => one[other].y - two[other].y)) {
      const box = end[side];
      const before = used.get(box) ?? 0;
      used.set(box, before + end.sessions * scale);
      starts.set(end, { ...(starts.get(end) ?? { fromY: 0, toY: 0 }), [place]: box.y + before });
    }
  };
  stack("from", "to", "fromY");
  stack("to", "from", "toY");
  const bands = ends.map((end): Band => ({ ...end, ...starts.get(end)!, height: Math.max(1, end.sessions * scale) }));
  return { boxes, bands, height: Math.max(...boxes.map(({ y, height }) => y + height), inner) + GAP };
}
