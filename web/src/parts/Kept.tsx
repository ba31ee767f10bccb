import { useScene } from "../context";
import { longDay } from "../lib/format";
import { State } from "./Card";
import css from "./Kept.module.css";

/** Says which days have no stored events, if the period has such days. `and` ends the sentence. */
export function Kept({ since, and = "" }: { since: string | null; and?: string }) {
  return since ? <p class={css.kept}>Events before {longDay(since)} are no longer stored{and}.</p> : null;
}

/** The same for an answer across projects: earlier days may lack events of some projects. */
export function KeptByAll({ since }: { since?: string | null }) {
  return since ? <p class={css.kept}>Some projects no longer store events before {longDay(since)}.</p> : null;
}

/** The message for a period whose events are all gone. */
export function Gone() {
  const { floor } = useScene();
  return (
    <State title="Events from this period are no longer stored">
      <p>Stored events begin on {longDay(floor!)}.</p>
    </State>
  );
}
