import type { ComponentChildren } from "preact";
import { growth, signed } from "../lib/format";
import css from "./Tiles.module.css";

export interface Tile {
  id: string;
  name: string;
  value: string;
  /** The figure, and what it was before. */
  now?: number;
  before?: number;
  /** More is worse. */
  isInverse?: boolean;
  hint?: ComponentChildren;
}

interface TilesProps {
  tiles: Tile[];
  selected?: string;
  onSelect?: (id: string) => void;
  /** What the changes are against. */
  against?: string;
  /** Nothing follows below. */
  isPlain?: boolean;
}

export function Tiles({ tiles, selected, onSelect, against, isPlain }: TilesProps) {
  return (
    <div class={`${css.tiles} ${isPlain ? css.plain : ""}`}>
      {tiles.map((tile) => {
        const content = (
          <>
            <div class={css.name}>{tile.name}</div>
            <div class={css.value} data-figure={tile.id}>
              {tile.value}
            </div>
            <div class={css.change}>{tile.hint ?? <Change {...tile} against={against} />}</div>
          </>
        );
        return onSelect ? (
          <button key={tile.id} type="button" class={css.tile} aria-pressed={tile.id === selected} onClick={() => onSelect(tile.id)}>
            {content}
          </button>
        ) : (
          <div key={tile.id} class={css.tile}>
            {content}
          </div>
        );
      })}
    </div>
  );
}

function Change({ now, before, isInverse, against }: Tile & { against?: string }) {
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
