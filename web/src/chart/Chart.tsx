// An SVG chart: it prints, follows the theme, and works with keyboards and screen readers.

import { useEffect, useRef, useState } from "preact/hooks";
import { labelled, ticks } from "./scale";
import css from "./Chart.module.css";

export interface Point {
  /** The label for screen readers and the tooltip. */
  name: string;
  /** The label on the axis. */
  tick: string;
  value: number;
  complete: boolean;
  /** The bucket has not begun, so the chart leaves it out. */
  isFuture?: boolean;
  former?: { name: string; value: number };
}

interface ChartProps {
  label: string;
  points: Point[];
  kind?: "line" | "bars";
  height?: number;
  format: (value: number) => string;
  axis?: (value: number) => string;
  note?: string;
  /** The names of both lines. Without them there is no legend. */
  legend?: { now: string; former?: string };
  /** Texts about points: one list for each. */
  marks?: string[][];
  /** Acts on a click on a point, and on Enter. */
  onPick?: (index: number) => void;
  /** What a pick does, for screen readers. */
  pickHint?: string;
  /** The smallest step of the axis: 1 for counts. */
  finest?: number;
}

const TOP = 10;
const BOTTOM = 26;

export function Chart({ label, points, kind = "line", height = 250, format, axis = format, note, legend, marks = [], onPick, pickHint, finest = 1 }: ChartProps) {
  const plot = useRef<HTMLDivElement>(null);
  const width = useWidth(plot);
  const [at, setAt] = useState<number | null>(null);
  const [spoken, setSpoken] = useState("");
  const index = at === null ? null : Math.min(at, points.length - 1);

  const values = points.flatMap(({ value, former }) => [value, former?.value ?? 0]);
  const lines = ticks(Math.min(0, ...values), Math.max(0, ...values), finest);
  const lastWhole = points.findLastIndex(({ complete }) => complete);
  const remark = (index: number) => (points[index]!.complete ? "" : index < lastWhole ? "partial" : "in progress");
  const [least, most] = [lines[0]!, lines.at(-1)!];
  const left = 10 + Math.max(...lines.map((value) => axis(value).length)) * 6.8;
  const right = 8;
  const inner = Math.max(10, width - left - right);
  const slot = inner / Math.max(1, kind === "bars" ? points.length : points.length - 1);
  const x = (index: number) => left + (kind === "bars" ? (index + 0.5) * slot : points.length === 1 ? inner / 2 : index * slot);
  const y = (value: number) => TOP + (height - TOP - BOTTOM) * (1 - (value - least) / (most - least));

  const read = (index: number) => {
    const point = points[index]!;
    const former = point.former ? `; ${point.former.name}: ${format(point.former.value)}` : "";
    const marked = (marks[index] ?? []).map((text) => `; ${text}`).join("");
    return `${point.name}${remark(index) && `, ${remark(index)}`}: ${format(point.value)}${former}${marked}`;
  };
  const move = (to: number | null) => {
    setAt(to);
    setSpoken(to === null ? "" : read(to));
  };
  const onKey = (event: KeyboardEvent) => {
    const last = points.length - 1;
    const from = index ?? (event.key === "ArrowLeft" ? last + 1 : -1);
    const to = { ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(last, from + 1), Home: 0, End: last }[event.key];
    if (event.key === "Escape" && index !== null) event.stopPropagation();
    if (event.key === "Escape") return move(null);
    if (event.key === "Enter" && index !== null) return onPick?.(index);
    if (to === undefined || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    move(to);
  };
  const nearest = (event: MouseEvent) => {
    const from = event.clientX - plot.current!.getBoundingClientRect().left - left;
    const near = kind === "bars" ? Math.floor(from / slot) : Math.round(from / slot);
    return Math.max(0, Math.min(points.length - 1, near));
  };
  const onPointer = (event: PointerEvent) => setAt(nearest(event));
  // A tap only reads a value: fingers have no hover.
  const onClick = (event: MouseEvent) => (event as PointerEvent).pointerType !== "touch" && onPick?.(nearest(event));

  const shown = index === null ? null : points[index]!;
  return (
    <div class={css.figure}>
      <div
        ref={plot}
        class={css.plot}
        role="application"
        aria-roledescription="chart"
        aria-label={`${label}. Use the arrow keys to read the values.${onPick ? ` Press Enter to ${pickHint}.` : ""}`}
        tabIndex={0}
        onKeyDown={onKey}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
        onClick={onClick}
        onPointerLeave={() => setAt(null)}
        onBlur={() => move(null)}
      >
        <svg class={css.svg} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true" focusable="false">
          {lines.map((value) => (
            <g key={value}>
              <line class={value === 0 ? `${css.grid} ${css.base}` : css.grid} x1={left} x2={width - right} y1={y(value)} y2={y(value)} />
              <text class={css.tick} x={left - 8} y={y(value) + 4} text-anchor="end">
                {axis(value)}
              </text>
            </g>
          ))}
          {labelled(points.length, Math.floor(inner / 74)).map((index) => (
            <text key={index} class={css.tick} x={x(index)} y={height - 6} text-anchor="middle">
              {points[index]!.tick}
            </text>
          ))}
          {points.map((_, index) => marks[index]?.length && <Mark key={index} x={x(index)} base={height - BOTTOM} />)}
          {shown && kind === "line" && <line class={css.cursor} x1={x(index!)} x2={x(index!)} y1={TOP} y2={height - BOTTOM} />}
          {kind === "bars" ? <Bars {...{ points, x, y, slot, shown: index }} /> : <Lines {...{ points, x, y }} />}
          {shown && !shown.isFuture && kind === "line" && <circle class={css.dot} r={4.5} cx={x(index!)} cy={y(shown.value)} />}
        </svg>
        {shown && (
          <div class={css.tip} style={x(index!) > width / 2 ? { right: `${width - x(index!) + 12}px` } : { left: `${x(index!) + 12}px` }}>
            <div class={css.tipName}>
              {shown.name}
              {remark(index!) && ` · ${remark(index!)}`}
            </div>
            <div class={css.tipValue}>{format(shown.value)}</div>
            {shown.former && (
              <div class={css.tipFormer}>
                {shown.former.name}: {format(shown.former.value)}
              </div>
            )}
            {marks[index!]?.map((text) => (
              <div key={text} class={css.marked}>
                {text}
              </div>
            ))}
            {note && <div class={css.note}>{note}</div>}
          </div>
        )}
      </div>
      <div class={css.spoken} aria-live="polite">
        {spoken}
      </div>
      {marks.some(({ length }) => length) && (
        <ul class={css.marks} aria-label="Annotations">
          {points.flatMap(({ name }, index) => (marks[index] ?? []).map((text) => <li key={name + text}>{`${name}: ${text}`}</li>))}
        </ul>
      )}
      {legend && (
        <div class={css.legend}>
          <span>
            <i class={css.keyLine} />
            {legend.now}
          </span>
          {legend.former && (
            <span>
              <i class={css.keyFormer} />
              {legend.former}
            </span>
          )}
        </div>
      )}
    </div>
  );
}

/** A line at a point that has a text, with a handle at the axis. */
function Mark({ x, base }: { x: number; base: number }) {
  return (
    <g>
      <line class={css.mark} x1={x} x2={x} y1={TOP} y2={base} />
      <path class={css.handle} d={`M${x - 4.5},${base + 1}h9v5l-4.500,4l-4.500,-4z`} />
    </g>
  );
}

interface Drawn {
  points: Point[];
  x: (index: number) => number;
  y: (value: number) => number;
}

function path(values: (number | undefined)[], { x, y }: Drawn, from = 0): string {
  return values.map((value, index) => (value === undefined ? "" : `${index ? "L" : "M"}${x(index + from).toFixed(1)},${y(value).toFixed(1)}`)).join("");
}

/** Buckets in progress are dashed. */
function Lines(drawn: Drawn) {
  const { points, x, y } = drawn;
  const values = points.filter(({ isFuture }) => !isFuture).map(({ value }) => value);
  const lastWhole = points.findLastIndex(({ complete }) => complete);
  const whole = Math.min(values.length, lastWhole + 1);
  const former = points.map(({ former }) => former?.value);
  const all = path(values, drawn);
  return (
    <g>
      {former.some((value) => value !== undefined) && <path class={css.former} d={path(former.slice(0, lastOf(former) + 1), drawn)} />}
      {values.length > 1 && <path class={css.area} d={`${all}L${x(values.length - 1)},${y(0)}L${x(0)},${y(0)}Z`} />}
      <path class={css.line} d={path(values.slice(0, whole), drawn)} />
      {whole < values.length && <path class={`${css.line} ${css.running}`} d={path(values.slice(Math.max(0, whole - 1)), drawn, Math.max(0, whole - 1))} />}
      {values.length === 1 && <circle class={css.dot} r={4.5} cx={x(0)} cy={y(values[0]!)} />}
    </g>
  );
}

function lastOf(values: (number | undefined)[]): number {
  return values.findLastIndex((value) => value !== undefined);
}

function Bars({ points, x, y, slot, shown }: Drawn & { slot: number; shown: number | null }) {
  const width = Math.max(1, Math.min(36, slot - Math.max(1, Math.min(4, slot * 0.25))));
  return (
    <g>
      {points.map(({ value, complete }, index) => {
        const [top, base] = [Math.min(y(value), y(0)), Math.max(y(value), y(0))];
        const look = value < 0 ? css.barLow : complete || index === shown ? css.bar : css.barRunning;
        return <rect key={index} class={look} x={x(index) - width / 2} width={width} y={top} height={Math.max(value === 0 ? 0 : 1, base - top)} rx={Math.min(2, width / 3)} />;
      })}
    </g>
  );
}

/** The width of an element, as it changes. */
export function useWidth(ref: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => setWidth(Math.max(120, Math.round(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
