// Numbers, money, dates and names, in the browser's language and the organization's timezone.

import type { Interval, Scalar } from "../api/types";
import { today } from "./days";

const LOCALE = navigator.language || "en";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumSignificantDigits: 3 });
const amount = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const percent = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 1 });
const wholePercent = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 0 });
const change = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 0, signDisplay: "exceptZero" });

export const count = (value: number) => whole.format(value);
/** The form of a noun that goes with a number. */
export const plural = (value: number, one: string, many = `${one}s`) => (value === 1 ? one : many);
/** A number with its noun: 1 event, 2 events. */
export const counted = (value: number, one: string, many?: string) => `${count(value)} ${plural(value, one, many)}`;
/** The API's messages begin in lower case and have no full stop. A field's name stays as it is. */
export function sentence(text: string, isAboutField = false): string {
  const begun = isAboutField ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

/** Abbreviates long numbers: 12.3K. */
export const brief = (value: number) => (Math.abs(value) < 10_000 ? whole.format(value) : short.format(value));
export const share = (value: number) => percent.format(value);
export const roundShare = (value: number) => wholePercent.format(value);

/** An amount of money, or the bare number if the currency is unknown. */
export function money(value: number, currency: string | undefined, options: Intl.NumberFormatOptions = {}): string {
  if (!currency) return amount.format(value);
  try {
    return new Intl.NumberFormat(LOCALE, { style: "currency", currency, ...options }).format(value);
  } catch {
    return `${whole.format(value)} ${currency}`;
  }
}

export function briefMoney(value: number, currency: string): string {
  if (Math.abs(value) < 1_000) return money(value, currency);
  if (Math.abs(value) < 100_000) return money(value, currency, { maximumFractionDigits: 0 });
  return money(value, currency, { notation: "compact", maximumSignificantDigits: 4 });
}

export function duration(seconds: number): string {
  const all = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(all / 3600), Math.floor((all % 3600) / 60), all % 60];
  if (hours >= 48) return `${Math.floor(hours / 24)}d ${hours % 24}h`;
  if (hours) return `${hours}h ${String(minutes).padStart(2, "0")}m`;
  return minutes ? `${minutes}m ${String(rest).padStart(2, "0")}s` : `${rest}s`;
}

/** The relative growth of a figure, or null if it grew from 0. */
export function growth(value: number, former: number): number | null {
  if (former === 0) return value === 0 ? 0 : null;
  return (value - former) / Math.abs(former);
}

export function signed(ratio: number): string {
  return Math.abs(ratio) >= 10 ? `${ratio > 0 ? "+" : "−"}${short.format(Math.abs(ratio) * 100)}%` : change.format(ratio);
}

const days = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(LOCALE, { timeZone: "UTC", ...options });
const dayNames = days({ weekday: "short", day: "numeric", month: "short" });
const shortDays = days({ day: "numeric", month: "short" });
const longDays = days({ day: "numeric", month: "short", year: "numeric" });
const months = days({ month: "long", year: "numeric" });
const shortMonths = days({ month: "short", year: "numeric" });

const instant = (day: string) => new Date(`${day.length === 7 ? `${day}-01` : day}T00:00:00Z`);

export const dayName = (day: string) => dayNames.format(instant(day));
export const longDay = (day: string) => longDays.format(instant(day));
export const month = (day: string) => shortMonths.format(instant(day));

/** The date of an instant in a timezone. */
export const dayAt = (time: string, timezone: string) => longDay(today(timezone, Date.parse(time)));

export function dayRange(from: string, to: string): string {
  return from === to ? longDay(from) : longDays.formatRange(instant(from), instant(to));
}

const zoned = new Map<string, Intl.DateTimeFormat>();

/** Formats an instant in a timezone. */
export function at(time: string, timezone: string, options: Intl.DateTimeFormatOptions): string {
  const key = timezone + JSON.stringify(options);
  let format = zoned.get(key);
  if (!format) zoned.set(key, (format = new Intl.DateTimeFormat(LOCALE, { timeZone: timezone, ...options })));
  return format.format(new Date(time));
}

export const moment = (time: string, timezone: string) => at(time, timezone, { dateStyle: "medium", timeStyle: "short" });
export const clock = (time: string, timezone: string) => at(time, timezone, { hour: "2-digit", minute: "2-digit" });

/** The label of a bucket on an axis. */
export function tick(bucket: string, interval: Interval, timezone: string): string {
  if (interval === "hour") return at(bucket, timezone, { hour: "numeric" });
  return interval === "month" ? shortMonths.format(instant(bucket)) : shortDays.format(instant(bucket));
}

/** The full name of a bucket. */
export function bucketName(bucket: string, interval: Interval, timezone: string): string {
  if (interval === "hour") return at(bucket, timezone, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  if (interval === "week") return `Week of ${longDay(bucket)}`;
  return interval === "month" ? months.format(instant(bucket)) : dayName(bucket);
}

const ago = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });
/** Fits into a tile. */
export const BRIEF_AGO = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto", style: "short" });

export function since(time: string, words = ago): string {
  const seconds = (new Date(time).getTime() - Date.now()) / 1000;
  const units: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400], ["hour", 3_600], ["minute", 60]];
  for (const [unit, length] of units) if (Math.abs(seconds) >= length) return words.format(Math.round(seconds / length), unit);
  return words.format(Math.min(0, Math.round(seconds)), "second");
}

function names(type: "region" | "language"): (code: string) => string {
  const known = new Intl.DisplayNames([LOCALE], { type });
  return (code) => {
    try {
      return known.of(code) ?? code;
    } catch {
      return code;
    }
  };
}

const region = names("region");
const language = names("language");

/** The display name of a field's value. */
export function valueName(field: string, value: Scalar): string {
  if (value === null) return "(none)";
  const text = String(value);
  if (field === "location_country" && /^[A-Z]{2}$/.test(text)) return region(text);
  if (field === "language") return language(text);
  if (field === "device") return text.charAt(0).toUpperCase() + text.slice(1);
  return /url$/.test(field) ? text.replace(/^https?:\/\/(www\.)?/, "") || text : text;
}
