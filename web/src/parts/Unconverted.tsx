import type { Unconverted as Money } from "../api/types";
import { useScene } from "../context";
import { counted, money } from "../lib/format";
import { address } from "../lib/router";
import { Icon } from "./Icon";
import css from "./Unconverted.module.css";

/** A warning about amounts that totals leave out, because their currency had no exchange rate. */
export function Unconverted({ money: unconverted, currency }: { money: Money; currency: string }) {
  const { project } = useScene();
  const currencies = Object.entries(unconverted);
  if (!currencies.length) return null;
  const amounts = currencies.map(([code, { revenue, orders }]) => `${money(revenue, code)} (${counted(orders, "order")})`).join(", ");
  return (
    <p class={css.banner} role="note">
      <Icon name="warn" />
      <span>
        Totals leave out {amounts}: there was no exchange rate to {currency} when the events were recorded. <a href={address(project, "settings", "organization")}>Set exchange rates</a> for future events.
      </span>
    </p>
  );
}
