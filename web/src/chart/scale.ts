/** About `wanted` round values that span 0, `least` and `most`, at least `finest` apart. */
export function ticks(least: number, most: number, finest = 0, wanted = 4): number[] {
  const span = most - Math.min(0, least);
  if (span <= 0) return [0, 1];
  const rough = Math.max(span / wanted, finest);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (rough / power <= 1 ? 1 : rough / power <= 2 ? 2 : rough / power <= 2.5 ? 2.5 : rough / power <= 5 ? 5 : 10);
  const from = Math.floor(Math.min(0, least) / step);
  const to = Math.max(Math.ceil(most / step - 1e-9), from + 1);
  return Array.from({ length: to - from + 1 }, (_, index) => Number(((from + index) * step).toPrecision(12)));
}

/** The points that get a label, evenly spread, if `room` labels fit. */
export function labelled(length: number, room: number): number[] {
  const every = Math.max(1, Math.ceil(length / Math.max(1, room)));
  return Array.from({ length }, (_, index) => index).filter((index) => index % every === 0);
}
