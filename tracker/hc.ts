// The tracker: sends pageviews and events of a page to headcount. docs/TRACKER.md describes its attributes and calls.
//
// It must stay below 2,200 bytes with gzip, so that it favours few words over structure, and runs in any browser of the last years.

type Fields = Record<string, unknown>;
type Call = ArrayLike<any>;
type Headcount = { (...call: any[]): void; q?: Call[]; on?: 1 };
type Navigated = { headcount?: Headcount; navigation?: EventTarget } & Record<string, unknown>;

/** Parameters that say where a visitor came from: the server reads no others. */
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
  // Google Tag Manager drops attributes: an address that has the key may have them all.
  const option = (name: string) => {
    const own = script.getAttribute("data-" + name);
    return own == null && inAddress.get("key") ? inAddress.get(name) : own;
  };
  const has = (name: string) => option(name) != null;
  const key = option("key");
  const endpoint = new URL(option("api") || "i", address) + "?pk=" + key;

  /** Sends an event that was not acknowledged again. */
  const waiting = new Set<() => void>();
  /** The fields of every event. */
  let known: Fields;
  /** Those of them that the page has set, whoever uses it. */
  const settings: Fields = {};
  /** The path of the last pageview, without a last slash. */
  let page: string | undefined;
  let isLeaving: boolean;
  /** The control of a label that was clicked. */
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
    // A text as the body is `text/plain`, which needs no preflight. The server records an `external_id` once, so that whatever was not
    // acknowledged may be sent again.
    const send = async () => {
      const now = Date.now();
      // The server takes the time between these two: clocks of visitors are often wrong.
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
        // After 1 to 2, 2 to 4, 4 to 8 seconds: visitors don't all come back at the moment at which a server does.
        setTimeout(send, (1 + Math.random()) * 2 ** (10 + RETRIES - retries--));
      } else {
        waiting.delete(send);
      }
    };
    if (retries) waiting.add(send);
    send();
  };

  // The server counts pages without fragment: those of `data-hash` become a part of the path.
  const path = () => {
    const hash = has("hash") && loc.hash.replace(/^#!?\/?|\?.*/g, "");
    return hash ? loc.pathname.replace(/\/?$/, "/") + hash : loc.pathname;
  };

  const query = () => {
    const kept = loc.search.replace(/[?&][^&]*/g, (pair) => (option("query") == "all" || ATTRIBUTION.test(pair) ? pair : ""));
    return kept.replace(/^&/, "?");
  };

  // Only the first pageview has the referrer and the status: they are those of the document. A document that is loaded again, or gone back
  // to, has not come from there again.
  const view = (metadata?: object, fields?: Fields): void => {
    const status = option("status");
    const isFirst = page == null;
    // Shorter than its successor, and all browsers have it: 1 is a reload, 2 a return.
    const { type }: any = performance.navigation || {};
    const isArrival = isFirst && doc.referrer.split("/")[2] != loc.host && !type;
    page = spelling();
    record("pageview", isFirst && status ? { status: +status, ...metadata } : metadata, {
      referrer: (isArrival && doc.referrer) || undefined,
      ...fields,
    });
  };

  // Applications correct their address: `/docs` and `/docs/` are one page.
  const spelling = () => path().replace(/\/$/, "");

  const moved = () => {
    if (page != spelling()) view();
  };

  // What can't be written as JSON must not break the page.
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
        // Somebody signed out: who comes next is somebody else. A page that knows nobody may say so as often as it likes.
        delete store().headcount_user;
        delete store().headcount_id;
        meet();
      }
    } catch (error) {
      console.error(error);
    }
  };

  // An event by attributes: `data-headcount-event` is its name, `data-headcount-plan` its `metadata.plan`.
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
    // Forms are sent, everything else is clicked.
    if (marked && (marked.tagName == "FORM") == (type == "submit") && target != passedOn) {
      const label = target.closest("label");
      // A browser passes a click on a label on to its control at once: it is the same click.
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
    // A browser's storage may be full.
    try {
      if (choice == "#headcount-ignore") storage("local").headcount_ignore = 1;
      if (choice == "#headcount-count") delete storage("local").headcount_ignore;
      meet();
    } catch {}
    take = run;
    // Before the first pageview, so that it has the user.
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
  // Calls while the page is rendered in advance.
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
