import { Copyable } from "../../parts/Form";
import css from "../Settings.module.css";

/** A secret that the server shows only once. */
export function Secret({ name, text }: { name: string; text: string }) {
  return (
    <div class={css.secret} role="status">
      <p>Copy the {name} now. You won't see it again.</p>
      <Copyable name={name} text={text} />
    </div>
  );
}
