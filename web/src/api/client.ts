// Requests to the server. Answers are cached with their ETags, so asking again costs only a 304.

import { sentence } from "../lib/format";
import { SHARE } from "../lib/router";

export type Params = Record<string, string | number | boolean | null | undefined>;

/** An error that the server answered, or `network` if it can't be reached. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param: string | null = null,
  ) {
    super(message);
  }

  /** Whether a retry may succeed. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

interface Kept {
  tag: string;
  answer: unknown;
}

const MOST_KEPT = 200;
const kept = new Map<string, Kept>();

/** Shares use their secret. Frames never use the cookie: a page around them could steal clicks. */
export const usesCookie = SHARE === null && self === top;

/** The secret of the share, stored for this tab so that a reload works. */
let secret = SHARE && keptSecret(SHARE);

function keptSecret(share: string): string | null {
  try {
    return sessionStorage.getItem(share);
  } catch {
    // Browsers may deny storage to frames of other sites.
    return null;
  }
}

export function takeSecret(share: string, text: string): void {
  secret = text;
  try {
    sessionStorage.setItem(share, text);
  } catch {
    // Without storage, the secret lasts until you leave the page.
  }
}

/** Fires when the browser is no longer signed in. */
export const signedOut = new EventTarget();

/** Fires after each change, so that figures and lists show it at once. */
export const changed = new EventTarget();

/** Fires when a request includes days whose events are no longer stored. */
export const outlived = new EventTarget();

export function url(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  return query.size ? `${path}?${query}` : path;
}

async function refusal(answer: Response): Promise<Refusal> {
  const body = await answer.json().catch(() => null);
  const { code = "unknown", message = `The server responded with status ${answer.status}.`, param = null } = body?.error ?? {};
  return new Refusal(answer.status, code, sentence(message, param !== null), param);
}

async function send(path: string, options: RequestInit): Promise<Response> {
  const headers = { ...(options.headers as Record<string, string>), ...(secret && { authorization: `Bearer ${secret}` }) };
  try {
    return await fetch(path, { ...options, headers, credentials: usesCookie ? "same-origin" : "omit", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(0, "network", "Can't reach the server.");
  }
}

/** Asks a question: a GET, or a POST that changes nothing. */
export async function ask<T>(path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const text = body && JSON.stringify(body);
  const key = text ? `${path} ${text}` : path;
  const known = kept.get(key);
  const headers: Record<string, string> = text ? { "content-type": "application/json" } : {};
  if (known) headers["if-none-match"] = known.tag;
  const answer = await send(path, { method: text ? "POST" : "GET", headers, body: text, signal, cache: "no-store" });
  if (answer.status === 304 && known) return known.answer as T;
  if (!answer.ok) {
    const error = await refusal(answer);
    if (error.status === 401) signedOut.dispatchEvent(new Event("change"));
    if (error.code === "before_retention") outlived.dispatchEvent(new Event("change"));
    throw error;
  }
  const content = (await answer.json()) as T;
  const tag = answer.headers.get("etag");
  kept.delete(key);
  if (tag) kept.set(key, { tag, answer: content });
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST_KEPT) break;
    kept.delete(oldest);
  }
  return content;
}

/** The cached answer, if there is one. */
export function remembered<T>(path: string, body?: object): T | undefined {
  return kept.get(body ? `${path} ${JSON.stringify(body)}` : path)?.answer as T | undefined;
}

/** Sends a change. */
export async function change<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: object): Promise<T> {
  const headers: Record<string, string> = body ? { "content-type": "application/json" } : {};
  const answer = await send(path, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw await refusal(answer);
  const content = (answer.status === 204 ? undefined : await answer.json()) as T;
  changed.dispatchEvent(new Event("change"));
  return content;
}

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Yields the events of a stream after the event `last`, until the connection ends. */
export async function* events(path: string, last: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const headers: Record<string, string> = last ? { "last-event-id": last } : {};
  const answer = await send(path, { headers, signal, cache: "no-store" });
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop()!;
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
      if (field("event")) yield { id: field("id"), event: field("event"), data: field("data") };
    }
  }
}
