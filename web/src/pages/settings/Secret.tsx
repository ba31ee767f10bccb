import { Copyable } from "../../parts/Form";
import css from "../Settings.module.css";

/** What the server shows once. */
export function Secret({ name, text }: { name: string; text: string }) {
  return (
    <div class={css.secret} role="status">
      <p>Copy {name} now. It is not shown again.</p>
      <Copyable name={name} text={text} />
    </div>
  );
}
