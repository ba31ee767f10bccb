import type { Unconverted as Money } from "../api/types";
import { useScene } from "../context";
import { count, money } from "../lib/format";
import { address } from "../lib/router";
import { Icon } from "./Icon";
import css from "./Unconverted.module.css";

/** Says which money is in no total, because its currency had no rate. */
export function Unconverted({ money: unconverted, currency }: { money: Money; currency: string }) {
  const { project } = useScene();
  const currencies = Object.entries(unconverted);
  if (!currencies.length) return null;
  const amounts = currencies.map(([code, { revenue, orders }]) => `${money(revenue, code)} (${count(orders)} orders)`).join(", ");
  return (
    <p class={css.banner} role="note">
      <Icon name="warn" />
      <span>
        Not counted below: {amounts}. There was no rate to {currency} when they were recorded. <a href={address(project, "settings", "organization")}>Set rates</a> for what comes next.
      </span>
    </p>
  );
}
