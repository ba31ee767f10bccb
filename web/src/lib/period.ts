// Periods, by the keys that Plausible's users know.

import type { Interval } from "../api/types";
import { addDays, addMonths, daysBetween, firstOfMonth, isDay } from "./days";

export interface Period {
  id: string;
  name: string;
  key: string;
}

export const PERIODS: Period[] = [
  { id: "day", name: "Today", key: "D" },
  { id: "yesterday", name: "Yesterday", key: "E" },
  { id: "7d", name: "Last 7 days", key: "W" },
  { id: "28d", name: "Last 28 days", key: "F" },
  { id: "91d", name: "Last 91 days", key: "N" },
  { id: "month", name: "Month to date", key: "M" },
  { id: "last_month", name: "Last month", key: "P" },
  { id: "year", name: "Year to date", key: "Y" },
  { id: "12mo", name: "Last 12 months", key: "L" },
  { id: "all", name: "All time", key: "A" },
];

export const DEFAULT_PERIOD = "28d";
/** The longest window that the server takes. */
const MOST_DAYS = 3_660;
const MOST_HOUR_DAYS = 14;

export interface Window {
  period: string;
  start_date: string;
  end_date: string;
  days: number;
}

export type Compare = "none" | "previous_period" | "previous_year";

/** The window of an address. */
export function windowOf(query: URLSearchParams, today: string): Window {
  const asked = query.get("period") ?? DEFAULT_PERIOD;
  const [start, end] = [query.get("from"), query.get("to")];
  if (asked === "custom" && isDay(start) && isDay(end) && start <= end && daysBetween(start, end) <= MOST_DAYS) return window(asked, start, end);
  const period = PERIODS.some(({ id }) => id === asked) ? asked : DEFAULT_PERIOD;
  switch (period) {
    case "day":
      return window(period, today, today);
    case "yesterday":
      return window(period, addDays(today, -1), addDays(today, -1));
    case "7d":
      return window(period, addDays(today, -6), today);
    case "91d":
      return window(period, addDays(today, -90), today);
    case "month":
      return window(period, firstOfMonth(today), today);
    case "last_month": {
      const first = addMonths(firstOfMonth(today), -1);
      return window(period, first, addDays(firstOfMonth(today), -1));
    }
    case "year":
      return window(period, `${today.slice(0, 4)}-01-01`, today);
    case "12mo":
      return window(period, addDays(addMonths(today, -12), 1), today);
    case "all":
      return window(period, addDays(today, 1 - MOST_DAYS), today);
    default:
      return window(period, addDays(today, -27), today);
  }
}

function window(period: string, start_date: string, end_date: string): Window {
  return { period, start_date, end_date, days: daysBetween(start_date, end_date) };
}

/** The intervals that suit a window, the first of which is the usual one. */
export function intervals({ days }: Window): Interval[] {
  if (days <= 2) return ["hour"];
  if (days <= MOST_HOUR_DAYS) return ["day", "hour"];
  if (days <= 100) return days > 27 ? ["day", "week"] : ["day"];
  if (days <= 400) return ["week", "day", "month"];
  return ["month"];
}

export function intervalOf(query: URLSearchParams, window: Window): Interval {
  const suited = intervals(window);
  const asked = query.get("interval") as Interval | null;
  return asked && suited.includes(asked) ? asked : suited[0]!;
}

export function compareOf(query: URLSearchParams): Compare {
  const asked = query.get("compare");
  return asked === "none" || asked === "previous_year" ? asked : "previous_period";
}

/** Where ranges end today and are a number of days. */
export function rangeDaysOf(query: URLSearchParams): number {
  const asked = Number(query.get("range_days") ?? 30);
  return Number.isInteger(asked) && asked >= 1 && asked <= 365 ? asked : 30;
}
