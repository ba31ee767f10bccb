// The tracker: sends pageviews and events of a page to headcount. docs/TRACKER.md describes its attributes and calls.
//
// It must stay below 2,048 bytes with gzip, so that it favours few words over structure, and runs in any browser of the last years.

type Fields = Record<string, unknown>;
type Call = ArrayLike<any>;
type Headcount = { (...call: any[]): void; q?: Call[]; on?: 1 };
type Navigated = { headcount?: Headcount; navigation?: EventTarget } & Record<string, unknown>;

/** Parameters that say where a visitor came from: the server reads no others. */
const ATTRIBUTION = /^(utm_(source|medium|campaign|term|content)|source|ref|msclkid|li_fat_id|(g|fb|tt|tw)clid)=/i;
const LOCAL = /^$|^(localhost|0\.0\.0\.0|127(\.\d+){3}|\[::1\])$|\.localhost$/;
const FILES = "pdf|docx?|xlsx?|pptx?|csv|txt|rtf|zip|rar|7z|t?gz|dmg|pkg|exe|msi|deb|rpm|apk|iso|mp[34]|mov|avi|wav|epub";
const MAX_WAITING = 20;
const RETRIES = 3;

const win = window as unknown as Navigated;
const doc = document;
const loc = location;
const nav = navigator;

function track(script: HTMLScriptElement): void {
  const option = (name: string) => script.getAttribute("data-" + name);
  const has = (name: string) => option(name) != null;
  const endpoint = new URL(option("api") || "i", script.src || loc.href) + "?pk=" + option("key");

  /** Bodies that were not acknowledged. */
  const waiting = new Set<string>();
  /** The fields of every event. */
  let known: Fields;
  /** The path of the last pageview; empty before the first. */
  let page = "";
  let isLeaving: boolean;

  // Browsers that block storage throw.
  const storage = (kind: unknown): any => {
    try {
      return win[kind + "Storage"] || {};
    } catch {
      return {};
    }
  };
  const ids = option("ids");
  const isStored = ids == "session" || ids == "device";
  const store = () => storage(ids == "device" ? "local" : "session");
  // `randomUUID` needs https.
  const random = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

  const meet = () => {
    known = {};
    if (isStored) {
      const kept = store();
      known.anonymous_id = kept.headcount_id || random();
      try {
        kept.headcount_id = known.anonymous_id;
      } catch {}
    }
  };

  const isUnsent = () =>
    storage("local").headcount_ignore ||
    (!has("local") && LOCAL.test(loc.hostname)) ||
    (!has("automated") && (nav.webdriver || win._phantom || win.callPhantom || win.Cypress));

  // A text as the body is `text/plain`, which needs no preflight. The server records an `external_id` once, so that whatever was not
  // acknowledged may be sent again.
  const post = (body: string, retries: number): void => {
    if (isLeaving && nav.sendBeacon && nav.sendBeacon(endpoint, body)) {
      waiting.delete(body);
      return;
    }
    fetch(endpoint, { method: "POST", body, keepalive: true, credentials: "omit" })
      .then((answer) => answer.status > 428)
      .catch(() => true)
      .then((isFailed) => {
        if (isFailed && retries) {
          // Visitors don't all come back at the moment at which a server does.
          setTimeout(post, (1e3 + Math.random() * 1e3) * 2 ** (RETRIES - retries), body, retries - 1);
        } else {
          waiting.delete(body);
        }
      });
  };

  const record = (name: string, metadata?: unknown, fields?: Fields): void => {
    if (isUnsent()) return;
    const body = JSON.stringify({
      name,
      url: loc.origin + path() + query(),
      language: nav.language,
      screen: screen.width + "x" + screen.height,
      ps: (nav as any).globalPrivacyControl ? "gpc" : undefined,
      metadata,
      ...known,
      external_id: random(),
      ...fields,
    });
    const isHeld = waiting.size < MAX_WAITING;
    if (isHeld) waiting.add(body);
    post(body, isHeld ? RETRIES : 0);
  };

  // The server counts pages without fragment: those of `data-hash` become a part of the path.
  const path = () => {
    const hash = has("hash") && loc.hash.replace(/^#!?\/?|\?.*/g, "");
    return hash ? loc.pathname.replace(/\/?$/, "/") + hash : loc.pathname;
  };

  const query = () => {
    const all = loc.search;
    if (option("query") == "all") return all;
    const kept = all.slice(1).split("&").filter((pair) => ATTRIBUTION.test(pair)).join("&");
    return kept && "?" + kept;
  };

  // Only the first pageview has the referrer and the status: they are those of the document. A document that is loaded again, or gone back
  // to, has not come from there again.
  const view = (metadata?: object, fields?: Fields): void => {
    const status = option("status");
    const entry = performance.getEntriesByType("navigation")[0] as PerformanceNavigationTiming | undefined;
    const isFirst = !page;
    const referrer = doc.referrer;
    const isArrival = isFirst && referrer && referrer.split("/")[2] != loc.host && (!entry || /^n|^p/.test(entry.type));
    page = path();
    record("pageview", isFirst && status ? { status: +status, ...metadata } : metadata, {
      referrer: isArrival ? referrer : undefined,
      ...fields,
    });
  };

  const moved = () => {
    if (page != path()) view();
  };

  // What can't be written as JSON must not break the page.
  const run = (call: Call): void => {
    try {
      dispatch(call);
    } catch (error) {
      console.error(error);
    }
  };

  const dispatch = ([name, a, b, c, d]: any): void => {
    if (name == "set") {
      Object.assign(known, a);
    } else if (name == "pageview") {
      view(a, b);
    } else if (name == "revenue") {
      record(name, c, { value: a, currency: b, ...d });
    } else if (name == "group") {
      known.group_id = "" + a;
      known.group_type = c;
      record(name, b);
    } else if (name == "identify") {
      if (a) {
        known.user_id = "" + a;
        record(name, b);
      } else {
        // Somebody signed out: who comes next is somebody else.
        if (isStored) delete store().headcount_id;
        meet();
      }
    } else {
      record(name, a, b);
    }
  };

  // An event by attributes: `data-headcount-event` is its name, `data-headcount-plan` its `metadata.plan`.
  const recordMarked = (element: Element): void => {
    const metadata: Fields = {};
    for (const { name, value } of element.attributes as unknown as Attr[]) {
      if (/^data-headcount-/.test(name)) metadata[name.slice(15)] = value;
    }
    const { event } = metadata;
    delete metadata.event;
    record(event as string, metadata);
  };

  const clicked = (event: MouseEvent): void => {
    const target = event.target as Element;
    if (event.button > 1 || !target.closest) return;
    const marked = target.closest("[data-headcount-event]");
    if (marked && marked.tagName != "FORM") recordMarked(marked);
    const link = target.closest("a[href]") as HTMLAnchorElement | null;
    if (!link || !/^http/.test(link.protocol)) return;
    const metadata = { url: link.href.replace(/[?#].*/, "") };
    const files = (option("downloads") || FILES).replace(/[, ]+/g, "|");
    if (has("downloads") && (link.hasAttribute("download") || RegExp("\\.(" + files + ")$", "i").test(link.pathname))) {
      record("download", metadata);
    } else if (has("outbound") && link.host != loc.host) {
      record("outbound", metadata);
    }
  };

  const start = (): void => {
    const choice = loc.hash;
    try {
      if (choice == "#headcount-ignore") storage("local").headcount_ignore = 1;
      if (choice == "#headcount-count") delete storage("local").headcount_ignore;
    } catch {}
    meet();
    const isManual = has("manual");
    if (!isManual) {
      view();
      watchPages();
    }
    addEventListener("pageshow", ({ persisted }) => {
      isLeaving = false;
      if (persisted && !isManual) view();
    });
    addEventListener("pagehide", () => {
      isLeaving = true;
      waiting.forEach((body) => post(body, 0));
    });
    for (const kind of ["click", "auxclick"]) doc.addEventListener(kind, clicked as EventListener, true);
    doc.addEventListener("submit", ({ target }) => {
      if ((target as Element).matches("[data-headcount-event]")) recordMarked(target as Element);
    }, true);
    win.headcount = (...call) => run(call);
    win.headcount.on = 1;
    early.forEach(run);
  };

  const watchPages = (): void => {
    if (win.navigation) {
      win.navigation.addEventListener("currententrychange", moved);
    } else {
      for (const method of ["pushState", "replaceState"] as const) {
        const original = history[method];
        history[method] = function (...call) {
          original.apply(this, call);
          moved();
        };
      }
      addEventListener("popstate", moved);
    }
  };

  const early = (win.headcount && win.headcount.q) || [];
  win.headcount = (...call) => early.push(call);
  // A second copy of the script does nothing.
  win.headcount.on = 1;
  if ((doc as any).prerendering) doc.addEventListener("prerenderingchange", start, { once: true });
  else start();
}

if (!win.headcount || !win.headcount.on) {
  track((doc.currentScript || doc.querySelector("script[data-key]")) as HTMLScriptElement);
}
