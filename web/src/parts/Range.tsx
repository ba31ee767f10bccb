import { useScene } from "../context";
import { rangeDaysOf } from "../lib/period";
import { setQuery } from "../lib/router";
import { Tabs } from "./Card";

const RANGES = [7, 30, 90, 365];

/** Tabs for the number of days up to today. */
export function Range() {
  const days = rangeDaysOf(useScene().query);
  const options = RANGES.map((days): [string, string] => [String(days), days === 365 ? "1 year" : `${days} days`]);
  return <Tabs label="Range" options={options} value={String(days)} onSelect={(days) => setQuery({ range_days: days === "30" ? null : days }, true)} />;
}
