// The URL has the whole state: /ui/{project}/{page}/{of}?{state}.
// The URL of a share is /ui/share/{share}/{page}?{state}.

import { useEffect, useState } from "preact/hooks";

export interface Place {
  project: string | null;
  page: string;
  /** The id of the company, person or group that the page shows. */
  of: string | null;
  query: URLSearchParams;
}

const MOVED = "headcount:moved";
export const HOME = "overview";

/** The path of the share. Links to other paths load another document. */
export const SHARE = /^\/ui\/share\/[^/]+/.exec(location.pathname)?.[0] ?? null;

export function here(): Place {
  const [, ui, ...path] = location.pathname.split("/");
  const [project, page, ...of] = SHARE ? path.slice(1) : path;
  const query = new URLSearchParams(location.search);
  if (ui !== "ui") return { project: null, page: HOME, of: null, query };
  const decode = (part: string) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { project: project ? decode(project) : null, page: page || HOME, of: of.length ? decode(of.join("/")) || null : null, query };
}

/** The URL of a page, with some parameters. */
export function address(project: string, page: string, of?: string | null, query: URLSearchParams | Record<string, string> = {}): string {
  const kept = new URLSearchParams(query);
  const parts = SHARE ? [page, of] : [project, page, of];
  const path = [SHARE ?? "/ui", ...parts.filter((part) => part != null).map((part) => encodeURIComponent(part!))];
  return path.join("/") + (kept.size ? `?${kept}` : "");
}

/** The URL of a person. `by` says if it has a user ID or an e-mail, since an ID can look like one. */
export function personAddress(project: string, { user_id, email }: { user_id: string | null; email: string | null }): string {
  return user_id === null ? address(project, "people", email, { by: "email" }) : address(project, "people", user_id, { by: "user_id" });
}

export function go(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  dispatchEvent(new Event(MOVED));
}

/** Changes parameters of the current URL. An empty value removes a parameter. */
export function setQuery(changes: Record<string, string | string[] | null>, replace = false): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const one of Array.isArray(value) ? value : value ? [value] : []) query.append(name, one);
  }
  go(location.pathname + (query.size ? `?${query}` : ""), replace);
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => setPlace(here());
    addEventListener("popstate", moved);
    addEventListener(MOVED, moved);
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener(MOVED, moved);
    };
  }, []);
  return place;
}

/** Follows links within the page without a reload. */
export function followLinks(): void {
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin || !link.pathname.startsWith(SHARE ?? "/ui")) return;
    event.preventDefault();
    const from = location.pathname;
    go(link.pathname + link.search);
    if (from !== link.pathname) {
      scrollTo(0, 0);
      document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
    }
  });
}
