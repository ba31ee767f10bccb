// Days in the organization's timezone, as text (`2026-11-24`). Arithmetic on them needs no timezone.

const DAY_MS = 86_400_000;

const date = (day: string) => new Date(`${day}T00:00:00Z`);
const text = (date: Date) => date.toISOString().slice(0, 10);

/** Today's date in a timezone. */
export function today(timezone: string, now = Date.now()): string {
  const parts = new Intl.DateTimeFormat("en-CA", { timeZone: timezone, year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(now);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? "";
  return `${part("year")}-${part("month")}-${part("day")}`;
}

export const addDays = (day: string, days: number) => text(new Date(date(day).getTime() + days * DAY_MS));

/** The number of days in a range, including both ends. */
export const daysBetween = (from: string, to: string) => Math.round((date(to).getTime() - date(from).getTime()) / DAY_MS) + 1;

export const firstOfMonth = (day: string) => `${day.slice(0, 7)}-01`;

/** The same day some months later, or the last day of that month. */
export function addMonths(day: string, months: number): string {
  const [year, month, of] = day.split("-").map(Number) as [number, number, number];
  const last = new Date(Date.UTC(year, month - 1 + months + 1, 0)).getUTCDate();
  return text(new Date(Date.UTC(year, month - 1 + months, Math.min(of, last))));
}

export const isDay = (value: string | null): value is string => !!value && /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(date(value).getTime());
