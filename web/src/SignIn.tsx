import { useState } from "preact/hooks";
import { change, type Refusal } from "./api/client";
import { buttons } from "./parts/Card";
import { FormError, Input, form } from "./parts/Form";
import { Mark } from "./parts/Mark";
import css from "./SignIn.module.css";

/** A pasted address of a one-time code counts as the code. */
function credential(text: string): { token: string } | { code: string } {
  const trimmed = text.trim();
  const code = /[#&]code=([^&\s]+)/.exec(trimmed)?.[1];
  if (code) return { code };
  return trimmed.startsWith("sk_") ? { token: trimmed } : { code: trimmed };
}

/** An address would sign in as somebody else: whoever follows it may not know. */
export function Replace({ text, code, onDone }: { text: string; code: string; onDone: () => void }) {
  const [error, setError] = useState<string>();
  const replace = () => change("POST", "/session", { code, replace: true }).then(onDone, (error: Refusal) => setError(error.message));
  return (
    <main class={css.page}>
      <div class={css.box}>
        <h1 class={css.title}>Sign in as somebody else?</h1>
        <p class={css.lead}>The address that was opened says so: {text}.</p>
        <div class={form.form}>
          <FormError>{error}</FormError>
          <button type="button" class={buttons.primary} onClick={onDone}>
            Stay signed in
          </button>
          <button type="button" class={buttons.danger} onClick={replace}>
            Sign out, and sign in there
          </button>
        </div>
      </div>
    </main>
  );
}

export function SignIn({ refused, onSignedIn }: { refused?: string; onSignedIn: () => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(refused);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await change("POST", "/session", credential(text));
      onSignedIn();
    } catch (error) {
      setError((error as Refusal).message);
      setBusy(false);
    }
  };
  return (
    <main class={css.page}>
      <div class={css.box}>
        <div class={css.brand}>
          <Mark class={css.mark!} />
          headcount
        </div>
        <h1 class={css.title}>Sign in</h1>
        <p class={css.lead}>With a one-time code, or an API token of your organization.</p>
        <form class={form.form} onSubmit={submit}>
          <Input label="Code or token" type="password" value={text} onText={setText} autocomplete="current-password" spellcheck={false} autofocus required />
          <FormError>{error}</FormError>
          <button type="submit" class={buttons.primary} disabled={isBusy || !text.trim()}>
            {isBusy ? "Signing in…" : "Sign in"}
          </button>
        </form>
        <div class={css.help}>
          <p>
            On the server, <code>headcount login</code> makes a code. It holds for five minutes and for one use.
          </p>
          <p>The browser keeps a cookie for 14 days, and never the token.</p>
        </div>
      </div>
    </main>
  );
}
