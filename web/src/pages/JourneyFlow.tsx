// The flow of sessions from step to step, as SVG. Tables below it have the same figures for
// keyboards and screen readers.

import { useRef, useState } from "preact/hooks";
import type { Journeys } from "../api/types";
import { useWidth } from "../chart/Chart";
import { readsMoney, useScene } from "../context";
import { count, counted, money } from "../lib/format";
import { flowOf, type Band, type Box } from "../lib/journey";
import { Turns, nodeName, stepTitle } from "./Journeys";
import css from "./Journeys.module.css";

/** The least room for a step. */
const LEAST_STEP = 170;
const BAR = 12;
const TOP = 26;
const HEIGHT = 360;
const CHAR = 7;

export function JourneyFlow({ data, isBackwards }: { data: Journeys; isBackwards: boolean }) {
  const { session } = useScene();
  const [hovered, setHovered] = useState<Box>();
  const [picked, setPicked] = useState<Box>();
  const room = useRef<HTMLDivElement>(null);
  const step = Math.max(LEAST_STEP, Math.floor(useWidth(room) / data.steps.length));
  const most = Math.floor((step - BAR - 50) / CHAR);
  const short = (text: string) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const { boxes, bands, height } = flowOf(data, isBackwards, step, HEIGHT);
  const width = step * data.steps.length;
  const same = (one: Box, two?: Box) => one.step === two?.step && one.node.value === two.node.value;
  const at = boxes.find((box) => same(box, hovered ?? picked));
  const isLit = (band: Band) => !!at && (band.from === at || band.to === at);
  const near = new Set(at && [at, ...bands.filter(isLit).flatMap(({ from, to }) => [from, to])]);
  const shown = boxes.find((box) => same(box, picked));
  return (
    <>
      <div class={css.scroll} tabIndex={0} role="group" aria-label="Flow">
        <div ref={room} />
        <svg class={css.svg} width={width} height={height + TOP} viewBox={`0 0 ${width} ${height + TOP}`} aria-hidden="true" focusable="false">
          {data.steps.map((_, index) => (
            <text key={index} class={css.title} x={(isBackwards ? data.steps.length - 1 - index : index) * step} y={12}>
              {stepTitle(index + 1, isBackwards)}
            </text>
          ))}
          <g transform={`translate(0 ${TOP})`}>
            {bands.map((band, index) => (
              <path key={index} class={css.band} data-lit={isLit(band)} data-dim={!!at && !isLit(band)} d={curve(band)}>
                <title>{`${nodeName(band.from.node)} → ${nodeName(band.to.node)}: ${counted(band.sessions, "session")}`}</title>
              </path>
            ))}
            {boxes.map((box) => (
              <g key={`${box.step} ${box.node.value}`} class={css.node} data-dim={!!at && !near.has(box)} data-picked={same(box, picked)} onPointerEnter={() => setHovered(box)} onPointerLeave={() => setHovered(undefined)} onClick={() => setPicked(same(box, picked) ? undefined : box)}>
                <rect class={css.hit} x={box.x} y={box.y - 6} width={step - 30} height={box.height + 12} />
                <rect class={box.node.value === null ? css.others : css.box} x={box.x} y={box.y} width={BAR} height={box.height} rx={2} />
                <text class={css.label} x={box.x + BAR + 7} y={box.y + Math.max(9, Math.min(box.height / 2, 40))}>
                  <title>{nodeName(box.node)}</title>
                  {short(nodeName(box.node))}
                  <tspan class={css.count}> {count(box.node.sessions)}</tspan>
                </text>
              </g>
            ))}
          </g>
        </svg>
      </div>
      {shown && (
        <div class={css.details} role="status">
          <div>
            <strong>{nodeName(shown.node)}</strong>
            <span>
              {stepTitle(shown.step, isBackwards)}: {counted(shown.node.sessions, "session")}, {counted(shown.node.users, "person", "people")}
              {shown.node.exits > 0 && `, ${counted(shown.node.exits, isBackwards ? "beginning" : "exit")}`}
              {readsMoney(session) && shown.node.revenue ? `, ${money(shown.node.revenue, data.currency)}` : ""}
            </span>
          </div>
          {shown.node.value !== null && <Turns value={shown.node.value} />}
        </div>
      )}
    </>
  );
}

/** A band from the right side of one box to the left side of the other. */
function curve({ from, to, fromY, toY, height }: Band): string {
  const [first, last, firstY, lastY] = from.x < to.x ? [from, to, fromY, toY] : [to, from, toY, fromY];
  const [start, end] = [first.x + BAR, last.x];
  const middle = (start + end) / 2;
  const line = (y1: number, y2: number, x2: number) => `C${middle},${y1.toFixed(1)} ${middle},${y2.toFixed(1)} ${x2},${y2.toFixed(1)}`;
  return `M${start},${firstY.toFixed(1)}${line(firstY, lastY, end)}V${(lastY + height).toFixed(1)}${line(lastY + height, firstY + height, start)}Z`;
}
