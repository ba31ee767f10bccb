import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { growth, signed } from "../lib/format";
import { WhyDialog, type Why } from "./Why";
import css from "./Tiles.module.css";

export interface Tile {
  id: string;
  name: string;
  value: string;
  /** The figure, and its value in the period compared with. */
  now?: number;
  before?: number;
  /** A rise is bad. */
  isInverse?: boolean;
  hint?: ComponentChildren;
  /** The explanation that its button opens. */
  why?: Omit<Why, "name">;
}

interface TilesProps {
  tiles: Tile[];
  selected?: string;
  onSelect?: (id: string) => void;
  /** The period compared with. */
  against?: string;
  /** The period is today, so far: a comparison with a whole day would mislead. */
  isRunning?: boolean;
  /** Nothing follows below the tiles. */
  isPlain?: boolean;
}

export function Tiles({ tiles, selected, onSelect, against, isRunning, isPlain }: TilesProps) {
  const [why, setWhy] = useState<Why>();
  return (
    <div class={`${css.tiles} ${isPlain ? css.plain : ""}`}>
      {tiles.map((tile) => {
        const content = (
          <>
            <div class={css.name}>{tile.name}</div>
            <div class={css.value} data-figure={tile.id}>
              {tile.value}
            </div>
            <div class={css.change}>{tile.hint ?? (isRunning ? "so far" : <Change {...tile} against={against} />)}</div>
          </>
        );
        return (
          <div key={tile.id} class={css.cell}>
            {onSelect ? (
              <button type="button" class={css.tile} aria-pressed={tile.id === selected} onClick={() => onSelect(tile.id)}>
                {content}
              </button>
            ) : (
              <div class={css.tile}>{content}</div>
            )}
            {tile.why && (
              <button type="button" class={css.why} aria-label={`${tile.name}: why this number?`} onClick={() => setWhy({ name: tile.name, ...tile.why! })}>
                Why?
              </button>
            )}
          </div>
        );
      })}
      {why && <WhyDialog why={why} onClose={() => setWhy(undefined)} />}
    </div>
  );
}

/** The growth of a figure. */
export function Change({ now, before, isInverse, against }: Pick<Tile, "now" | "before" | "isInverse"> & { against?: string }) {
  if (now === undefined || before === undefined) return null;
  const ratio = growth(now, before);
  if (ratio === null) return <span>new</span>;
  const rounded = Math.round(ratio * 100);
  const look = rounded === 0 ? undefined : rounded > 0 === !isInverse ? css.good : css.bad;
  return (
    <span title={against ? `Compared with ${against}` : undefined}>
      <span class={look}>{rounded === 0 ? "no change" : signed(ratio)}</span>
    </span>
  );
}
