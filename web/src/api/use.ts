import { useEffect, useRef, useState } from "preact/hooks";
import { ask, remembered, type Refusal } from "./client";

/** How often figures of running days are asked for again. */
const EVERY_MS = 20_000;

export interface Answer<T> {
  data?: T;
  error?: Refusal;
  /** The figures are of an earlier answer: the server doesn't answer now. */
  isStale: boolean;
  isLoading: boolean;
  again: () => void;
}

/**
 * The answer to a question, asked again while the page is seen. A question that changes keeps the former figures until the new ones come, unless `of` changes,
 * which names what they are about.
 */
export function useAnswer<T>(path: string | null, body?: object, of = ""): Answer<T> {
  const key = path && (body ? `${path} ${JSON.stringify(body)}` : path);
  const [state, setState] = useState<{ key: string | null; of: string; data?: T; error?: Refusal }>({ key: null, of });
  const [turn, setTurn] = useState(0);
  const asked = useRef({ path, body });
  asked.current = { path, body };

  useEffect(() => {
    const { path, body } = asked.current;
    if (!path || !key) return;
    const abort = new AbortController();
    const earlier = remembered<T>(path, body);
    if (earlier) setState({ key, of, data: earlier });
    let timer: ReturnType<typeof setTimeout>;
    const run = async () => {
      if (document.hidden) return wait();
      try {
        const data = await ask<T>(path, body, abort.signal);
        if (!abort.signal.aborted) setState((state) => (state.data === data && state.key === key && !state.error ? state : { key, of, data }));
      } catch (error) {
        if (abort.signal.aborted) return;
        setState((state) => ({ key, of, data: (error as Refusal).isPassing && state.of === of ? state.data : undefined, error: error as Refusal }));
      }
      wait();
    };
    const wait = () => {
      if (!abort.signal.aborted) timer = setTimeout(run, EVERY_MS);
    };
    const seen = () => {
      if (document.hidden) return;
      clearTimeout(timer);
      void run();
    };
    void run();
    document.addEventListener("visibilitychange", seen);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, of, turn]);

  const isAbout = state.of === of;
  const isCurrent = state.key === key;
  return {
    data: isAbout && path ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isStale: isCurrent && !!state.error && state.data !== undefined,
    isLoading: !!key && !isCurrent,
    again: () => setTurn(turn + 1),
  };
}

/** An answer that is shown once another one has come, or failed, which says the currency of its amounts. */
export function withCurrency<T>(answer: Answer<T>, other: Answer<{ currency?: string }>): Answer<T> {
  return other.data === undefined && other.isLoading ? { ...answer, data: undefined } : answer;
}
