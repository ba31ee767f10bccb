// Filters in the URL: one `f=field~operator~value` for each.

import type { Scalar } from "../api/types";
import { valueName } from "./format";

export interface Filter {
  field: string;
  operator: string;
  value?: string | number | boolean | string[];
}

/** A filter of the API: the page makes only the first kind, but segments may have both. */
export type Clause = Filter | { any: Filter[][] };

export const OPERATORS: Record<string, string> = {
  is: "is",
  is_not: "is not",
  contains: "contains",
  not_contains: "does not contain",
  starts_with: "begins with",
  ends_with: "ends with",
  matches: "matches",
  is_set: "is set",
  is_not_set: "is not set",
};

export const FIELDS: Record<string, string> = {
  source: "Source",
  medium: "Medium",
  campaign: "Campaign",
  acquisition_channel: "Channel",
  path: "Page",
  url: "Page URL",
  entry_url: "Entry page",
  exit_url: "Exit page",
  name: "Event",
  location_country: "Country",
  language: "Language",
  device: "Device",
  browser: "Browser",
  os: "Operating system",
  screen: "Screen size",
  hostname: "Hostname",
  referrer: "Referrer",
};

const MOST = 20;

export const fieldName = (field: string) => FIELDS[field] ?? field.replace(/^metadata\./, "");

export const encode = (parts: string[]) => parts.map((part) => part.replaceAll("%", "%25").replaceAll("~", "%7E")).join("~");
export const decode = (text: string) => text.split("~").map((part) => part.replaceAll("%7E", "~").replaceAll("%25", "%"));

export function write({ field, operator, value }: Filter): string {
  const text = value === undefined ? "" : typeof value === "string" && !value.startsWith("json:") ? value : `json:${JSON.stringify(value)}`;
  return encode([field, operator, text]);
}

export function read(text: string): Filter | null {
  const [field, operator, value] = decode(text);
  if (!field || !operator || !(operator in OPERATORS)) return null;
  if (operator.endsWith("_set")) return { field, operator };
  if (value?.startsWith("json:")) {
    try {
      return { field, operator, value: JSON.parse(value.slice(5)) };
    } catch {
      return null;
    }
  }
  return { field, operator, value: value ?? "" };
}

const JSON_MARK = "json:";

/** A part of the URL that the page can't make by itself, such as alternatives of a saved funnel. */
export const writeJson = (value: object) => JSON_MARK + JSON.stringify(value);

/** Reads such a part, which has one of these keys. */
export function readJson<T>(text: string, ...keys: (keyof T)[]): T | null {
  if (!text.startsWith(JSON_MARK)) return null;
  try {
    const value = JSON.parse(text.slice(JSON_MARK.length));
    return keys.some((key) => typeof value?.[key] === "object") ? value : null;
  } catch {
    return null;
  }
}

export const writeClause = (clause: Clause) => ("any" in clause ? writeJson(clause) : write(clause));
export const readClause = (text: string): Clause | null => readJson<{ any: Filter[][] }>(text, "any") ?? read(text);

/** The filters in the URL, and their texts there. */
export function clausesOf(query: URLSearchParams): { clause: Clause; text: string }[] {
  const all = query.getAll("f").map((text) => ({ clause: readClause(text)!, text }));
  return all.filter(({ clause }) => clause !== null).slice(0, MOST);
}

/** Adds a text, or removes it if it is there. */
export const toggled = (texts: string[], text: string) => (texts.includes(text) ? texts.filter((other) => other !== text) : [...texts, text]);

/** The filter on a value, in the URL. */
export const valueFilter = (field: string, value: Scalar) => write(value === null ? { field, operator: "is_not_set" } : { field, operator: "is", value });

export const valueText = ({ field, value }: Filter) => [value ?? []].flat().map((value) => valueName(field, value)).join(" or ");

/** A filter in words. */
export function clauseText(clause: Clause): string {
  if ("any" in clause) return clause.any.map((list) => list.map(clauseText).join(" and ")).join(", or ");
  const { field, operator } = clause;
  return [fieldName(field), OPERATORS[operator] ?? operator, valueText(clause)].filter(Boolean).join(" ");
}
