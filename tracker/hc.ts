// The tracker sends the pageviews and events of a page to headcount. docs/TRACKER.md describes its
// attributes and calls.
//
// It must stay below 2,200 bytes with gzip, so it prefers short code to structure. It runs in all
// browsers of recent years.

type Fields = Record<string, unknown>;
type Call = ArrayLike<any>;
type Headcount = { (...call: any[]): void; q?: Call[]; on?: 1 };
type Navigated = { headcount?: Headcount; navigation?: EventTarget } & Record<string, unknown>;

/** The parameters that name a source. The server reads no others. */
const ATTRIBUTION =
  /^.(utm_(source|medium|campaign|term|content)|source|ref|[gw]braid|([gy]|fb|t[tw])clid|msclkid|li_fat_id|epik|rdt_cid|sccid|igsh(id)?)=/i;
const LOCAL = /^($|(0|127)\.[\d.]+$|\[::1)|(^|\.)localhost$/;
const FILES = "pdf|docx?|xlsx?|pptx?|csv|txt|rtf|zip|rar|7z|t?gz|dmg|pkg|exe|msi|deb|rpm|apk|iso|mp[34]|mov|avi|wav|epub";
const MAX_WAITING = 20;
const RETRIES = 3;

const win = window as unknown as Navigated;
const doc = document;
const loc = location;
const nav = navigator;

function track(early: Call[]): void {
  const script = (doc.currentScript || doc.querySelector('script[data-key],[src*="key=pk_"]') || doc.body) as HTMLScriptElement;
  const address = new URL(script.src || "i", loc as any);
  const inAddress = address.searchParams;
  // Google Tag Manager drops attributes. If the script's URL has the key, it may have all options.
  const option = (name: string) => {
    const own = script.getAttribute("data-" + name);
    return own == null && inAddress.get("key") ? inAddress.get(name) : own;
  };
  const has = (name: string) => option(name) != null;
  const key = option("key");
  const endpoint = new URL(option("api") || "i", address) + "?pk=" + key;

  /** A function for each unacknowledged event, which sends it again. */
  const waiting = new Set<() => void>();
  /** The ids and group of every event. */
  let known: Fields;
  /** The fields that the page has set for every event. Signing out keeps them. */
  const settings: Fields = {};
  /** The path of the last pageview, without a slash at the end. */
  let page: string | undefined;
  let isLeaving: boolean;
  /** The control of the label that was just clicked. */
  let passedOn: unknown;

  // Browsers that block storage throw.
  const storage = (kind: unknown): any => {
    try {
      return win[kind + "Storage"] || {};
    } catch {
      return {};
    }
  };
  const ids = { session: "session", device: "local" }[option("ids")!];
  const store = () => storage(ids);
  // `randomUUID` needs https.
  const random = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

  const meet = () => {
    const kept = store();
    known = { user_id: kept.headcount_user };
    if (ids) kept.headcount_id = known.anonymous_id = kept.headcount_id || random();
  };

  const isUnsent = () =>
    storage("local").headcount_ignore ||
    (!has("local") && LOCAL.test(loc.hostname)) ||
    (!has("automated") && (nav.webdriver || win._phantom || win.callPhantom || win.Cypress));

  const record = (name: string, metadata?: unknown, fields?: Fields): void => {
    if (isUnsent()) return;
    const body = JSON.stringify({
      name,
      url: loc.origin + path() + query(),
      language: nav.language,
      screen: screen.width + "x" + screen.height,
      ps: (nav as any).globalPrivacyControl ? "gpc" : undefined,
      metadata,
      ...settings,
      ...known,
      external_id: random(),
      ...fields,
    });
    let retries = waiting.size < MAX_WAITING ? RETRIES : 0;
    let time: number;
    let isReported: unknown;
    // A text body is `text/plain`, which needs no preflight. The server records an `external_id` once,
    // so a retry counts no event twice.
    const send = async () => {
      const now = Date.now();
      // The server uses only the difference of these times: visitors' clocks are often wrong.
      const text = time ? JSON.stringify({ timestamp: time, _sent_at: now, ...JSON.parse(body) }) : body;
      time = time || now;
      let status: any;
      if (!isLeaving || !nav.sendBeacon || !nav.sendBeacon(endpoint, text)) {
        status = 500;
        try {
          const answer = await fetch(endpoint, { method: "POST", body: text, keepalive: true, credentials: "omit" });
          status = answer.status;
          if (/^4/.test(status) && !isReported) {
            isReported = 1;
            console.warn("headcount:", status, await answer.text());
          }
        } catch {}
      }
      if (/429|^5/.test(status) && retries) {
        // After 1–2, 2–4 and 4–8 seconds. Random delays spread the retries of many visitors.
        setTimeout(send, (1 + Math.random()) * 2 ** (10 + RETRIES - retries--));
      } else {
        waiting.delete(send);
      }
    };
    if (retries) waiting.add(send);
    send();
  };

  // The server ignores fragments. With `data-hash`, the fragment becomes a part of the path.
  const path = () => {
    const hash = has("hash") && loc.hash.replace(/^#!?\/?|\?.*/g, "");
    return hash ? loc.pathname.replace(/\/?$/, "/") + hash : loc.pathname;
  };

  const query = () => {
    const kept = loc.search.replace(/[?&][^&]*/g, (pair) => (option("query") == "all" || ATTRIBUTION.test(pair) ? pair : ""));
    return kept.replace(/^&/, "?");
  };

  // The referrer and the status belong to the document, so only its first pageview has them.
  // A reload or a return is no new arrival, so it has no referrer.
  const view = (metadata?: object, fields?: Fields): void => {
    const status = option("status");
    const isFirst = page == null;
    // Deprecated, but short and in all browsers: 1 is a reload, 2 a return.
    const { type }: any = performance.navigation || {};
    const isArrival = isFirst && doc.referrer.split("/")[2] != loc.host && !type;
    page = spelling();
    record("pageview", isFirst && status ? { status: +status, ...metadata } : metadata, {
      referrer: (isArrival && doc.referrer) || undefined,
      ...fields,
    });
  };

  // Applications add or remove a slash at the end: `/docs` and `/docs/` are one page.
  const spelling = () => path().replace(/\/$/, "");

  const moved = () => {
    if (page != spelling()) view();
  };

  // Metadata that can't become JSON must not break the page.
  const run = (call: any): void => {
    const [name, a, b, c, d] = call;
    try {
      if (name == "set") {
        Object.assign(settings, a);
      } else if (name == "pageview") {
        view(a, b);
      } else if (name == "revenue") {
        record(name, c, { value: a, currency: b, ...d });
      } else if (name == "group") {
        known.group_id = "" + a;
        known.group_type = c;
        record(name, b);
      } else if (name != "identify") {
        record(name, a, b);
      } else if (a) {
        known.user_id = "" + a;
        record(name, b);
        store().headcount_user = known.user_id;
      } else if (known.user_id || call.length < 2) {
        // The user signed out: the next one gets a new id.
        // `identify` with `undefined` keeps the id if no user was known.
        delete store().headcount_user;
        delete store().headcount_id;
        meet();
      }
    } catch (error) {
      console.error(error);
    }
  };

  // Builds an event from attributes. `data-headcount-event` is its name, and `data-headcount-plan`
  // its `metadata.plan`.
  const recordMarked = (element: Element): void => {
    const metadata: Fields = {};
    for (const { name, value } of element.attributes as unknown as Attr[]) {
      const key = name.split("data-headcount-")[1];
      if (key) metadata[key] = value;
    }
    const { event, ...rest } = metadata;
    record(event as string, rest);
  };

  const acted = ({ type, target, button }: any): void => {
    if (button > 1 || !target.closest) return;
    const marked = target.closest("[data-headcount-event]");
    // A form sends its event on submit, any other element on a click.
    if (marked && (marked.tagName == "FORM") == (type == "submit") && target != passedOn) {
      const label = target.closest("label");
      // The browser repeats a click on a label on its control. Count it once.
      passedOn = label && label.control != target && label.control;
      setTimeout(() => (passedOn = 0));
      recordMarked(marked);
    }
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
    // The storage may be full.
    try {
      if (choice == "#headcount-ignore") storage("local").headcount_ignore = 1;
      if (choice == "#headcount-count") delete storage("local").headcount_ignore;
      meet();
    } catch {}
    take = run;
    // Early calls run before the first pageview, so that it has the user.
    early.forEach(run);
    if (!has("manual")) {
      moved();
      watchPages();
    }
    held.forEach(run);
    addEventListener("pageshow", ({ persisted }) => {
      isLeaving = false;
      if (persisted && !has("manual")) view();
    });
    addEventListener("pagehide", () => {
      isLeaving = true;
      waiting.forEach((send) => send());
    });
    doc.addEventListener("click", acted, true);
    doc.addEventListener("auxclick", acted, true);
    doc.addEventListener("submit", acted, true);
  };

  const watchPages = (): void => {
    if (win.navigation) {
      win.navigation.addEventListener("currententrychange", moved);
    } else {
      for (const method of ["pushState", "replaceState"] as const) {
        const original = history[method];
        history[method] = (...call) => {
          original.apply(history, call);
          moved();
        };
      }
      addEventListener("popstate", moved);
    }
  };

  if (!key) {
    console.warn("headcount: no data-key");
    return;
  }
  // Calls made while the browser prerenders the page.
  const held: Call[] = [];
  let take: (call: Call) => void = (call) => held.push(call);
  win.headcount = (...call) => take(call);
  // A second copy of the script does nothing.
  win.headcount.on = 1;
  if ((doc as any).prerendering) doc.addEventListener("prerenderingchange", start);
  else start();
}

const stub = win.headcount || ({} as Headcount);
if (!stub.on) track(stub.q || []);
