import { useState } from "preact/hooks";
import { change, type Refusal } from "./api/client";
import { buttons } from "./parts/Card";
import { FormError, Input, form } from "./parts/Form";
import { Mark } from "./parts/Mark";
import css from "./SignIn.module.css";

/** Accepts a token, a sign-in code, or a pasted sign-in link. */
function credential(text: string): { token: string } | { code: string } {
  const trimmed = text.trim();
  const code = /[#&]code=([^&\s]+)/.exec(trimmed)?.[1];
  if (code) return { code };
  return trimmed.startsWith("sk_") ? { token: trimmed } : { code: trimmed };
}

/** Asks before a sign-in link replaces the session: you may have followed it unaware. */
export function Replace({ text, code, onDone }: { text: string; code: string; onDone: () => void }) {
  const [error, setError] = useState<string>();
  const replace = () => change("POST", "/session", { code, replace: true }).then(onDone, (error: Refusal) => setError(error.message));
  return (
    <main class={css.page}>
      <div class={css.box}>
        <h1 class={css.title}>Sign in as someone else?</h1>
        <p class={css.lead}>You opened a sign-in link. {text}</p>
        <div class={form.form}>
          <FormError>{error}</FormError>
          <button type="button" class={buttons.primary} onClick={onDone}>
            Stay signed in
          </button>
          <button type="button" class={buttons.danger} onClick={replace}>
            Sign out and switch
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
        <p class={css.lead}>Use a sign-in code or an API token.</p>
        <form class={form.form} onSubmit={submit}>
          <Input label="Sign-in code or API token" type="password" value={text} onText={setText} autocomplete="current-password" spellcheck={false} autofocus required />
          <FormError>{error}</FormError>
          <button type="submit" class={buttons.primary} disabled={isBusy || !text.trim()}>
            {isBusy ? "Signing in…" : "Sign in"}
          </button>
        </form>
        <div class={css.help}>
          <p>
            To get a code, run <code>headcount login</code> on the server. It works once, within five minutes.
          </p>
          <p>Your browser stores a cookie for 14 days. It never stores the token.</p>
        </div>
      </div>
    </main>
  );
}
