import { useEffect, useRef, useState } from "preact/hooks";
import { ask, changed, remembered, type Refusal } from "./client";

/** How often figures are refreshed. */
const EVERY_MS = 20_000;

export interface Answer<T> {
  data?: T;
  error?: Refusal;
  /** The data is from an earlier answer, because the last refresh failed. */
  isStale: boolean;
  isLoading: boolean;
  again: () => void;
}

/**
 * The answer to a question, refreshed while the page is visible. When the question changes, the old
 * data stays until the new data arrives, unless the subject `of` changes too.
 */
export function useAnswer<T>(path: string | null, body?: object, of = ""): Answer<T> {
  const key = path && (body ? `${path} ${JSON.stringify(body)}` : path);
  const [state, setState] = useState<{ key: string | null; of: string; data?: T; error?: Refusal }>({ key: null, of });
  const [turn, setTurn] = useState(0);
  const asked = useRef({ path, body });
  asked.current = { path, body };

  useEffect(() => {
    const again = () => setTurn((turn) => turn + 1);
    changed.addEventListener("change", again);
    return () => changed.removeEventListener("change", again);
  }, []);
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

/** Delays an answer until the answer with the currency of its amounts has arrived or failed. */
export function withCurrency<T>(answer: Answer<T>, other: Answer<{ currency?: string }>): Answer<T> {
  return other.data === undefined && other.isLoading ? { ...answer, data: undefined } : answer;
}
