import { useScene } from "../context";
import { longDay } from "../lib/format";
import { State } from "./Card";
import css from "./Kept.module.css";

/** Says since when the project keeps events, if that is not all that was asked for. */
export function Kept({ since, and = "" }: { since: string | null; and?: string }) {
  return since ? <p class={css.kept}>Events before {longDay(since)} are no longer kept{and}.</p> : null;
}

/** Says since when all projects keep events, if an answer of the organization is about earlier days, too. */
export function KeptByAll({ since }: { since?: string | null }) {
  return since ? <p class={css.kept}>Not every project keeps events before {longDay(since)}.</p> : null;
}

/** Stands for figures of which nothing is kept. */
export function Gone() {
  const { floor } = useScene();
  return (
    <State title="Events of these days are no longer kept">
      <p>The first day that is kept is {longDay(floor!)}.</p>
    </State>
  );
}
