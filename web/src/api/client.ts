// Asks the server. Answers are kept with their tags: who asks again pays for a 304.

export type Params = Record<string, string | number | boolean | null | undefined>;

/** A refusal of the server, or `network`. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param: string | null = null,
  ) {
    super(message);
  }

  /** The same question may be answered a little later. */
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

/** The secret of a share: pages in frames of other sites have no cookie. */
let secret: string | null = null;

export function goWithSecret(share: string): void {
  secret = share;
}

/** Whether requests that can't have headers, such as streams, are known to the server. */
export const hasCookie = () => secret === null;

/** Told when the server knows the browser no more. */
export const signedOut = new EventTarget();

export function url(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  return query.size ? `${path}?${query}` : path;
}

async function refusal(answer: Response): Promise<Refusal> {
  const body = await answer.json().catch(() => null);
  const { code = "unknown", message = `The server answered ${answer.status}.`, param = null } = body?.error ?? {};
  return new Refusal(answer.status, code, message, param);
}

async function send(path: string, options: RequestInit): Promise<Response> {
  const headers = { ...(options.headers as Record<string, string>), ...(secret && { authorization: `Bearer ${secret}` }) };
  try {
    return await fetch(path, { ...options, headers, credentials: secret ? "omit" : "same-origin", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(0, "network", "The server can't be reached.");
  }
}

/** A question: GET, or a POST that changes nothing. */
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

/** What was answered last, if it is kept. */
export function remembered<T>(path: string, body?: object): T | undefined {
  return kept.get(body ? `${path} ${JSON.stringify(body)}` : path)?.answer as T | undefined;
}

/** A change. */
export async function change<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: object): Promise<T> {
  const headers: Record<string, string> = body ? { "content-type": "application/json" } : {};
  const answer = await send(path, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw await refusal(answer);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}
