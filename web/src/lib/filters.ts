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

export function filtersOf(query: URLSearchParams): Filter[] {
  return query.getAll("f").map(read).filter((filter) => filter !== null).slice(0, MOST);
}

/** Adds a filter on a value, or removes it if it is there. Returns the filters as URL parameters. */
export function toggle(filters: Filter[], field: string, value: Scalar): string[] {
  const text = write(value === null ? { field, operator: "is_not_set" } : { field, operator: "is", value });
  const others = filters.map(write).filter((other) => other !== text);
  return others.length < filters.length ? others : [...others, text];
}

export const valueText = ({ field, value }: Filter) => [value ?? []].flat().map((value) => valueName(field, value)).join(" or ");

/** A filter in words. */
export function clauseText(clause: Clause): string {
  if ("any" in clause) return clause.any.map((list) => list.map(clauseText).join(" and ")).join(", or ");
  const { field, operator } = clause;
  return [fieldName(field), OPERATORS[operator] ?? operator, valueText(clause)].filter(Boolean).join(" ");
}
