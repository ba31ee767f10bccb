// A browser, and a site whose pages have the tracker.

import { once } from "node:events";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const PROGRAM = process.env.CHROMIUM ?? "/usr/bin/chromium";
// That of a person: the server drops the events of `HeadlessChrome`.
const USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function launch() {
  return chromium.launch({
    executablePath: PROGRAM,
    args: ["--no-sandbox", `--user-agent=${USER_AGENT}`, "--no-proxy-server", "--host-resolver-rules=MAP *.test 127.0.0.1"],
    // Pages that are left stay in memory, as they do for people.
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
  });
}

/** A new visitor. `script` runs in every page before its own. */
export async function visitor(browser, script) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
  if (script) await context.addInitScript(script);
  return context;
}

/** Serves every path of every host of `*.test` as one page. */
export class Site {
  /** The attributes of the script's tag. */
  attributes = "";
  /** What stands instead of the tag. */
  insert;
  /** What stands before it. */
  head = "";
  /** Pages that are different, by path. */
  pages = {};
  /** The paths that were asked for. */
  asked = [];
  body = "";

  static async start(statsOrigin, key) {
    const site = new Site();
    site.stats = statsOrigin;
    site.key = key;
    site.script = "/hc.js";
    site.server = createServer((asked, answer) => {
      site.asked.push(asked.url);
      if (asked.url.startsWith("/files/")) return answer.writeHead(200, { "content-disposition": "attachment" }).end("file");
      const body = asked.headers.host.startsWith("other.") ? site.foreign : (site.pages[asked.url] ?? site.page());
      answer.writeHead(asked.url.startsWith("/gone") ? 404 : 200, { "content-type": "text/html" }).end(body ?? "<title>other</title>");
    }).listen(0, "127.0.0.1");
    await once(site.server, "listening");
    site.port = site.server.address().port;
    site.origin = `http://site.test:${site.port}`;
    site.other = `http://other.test:${site.port}`;
    return site;
  }

  get tag() {
    return `<script defer src="${this.stats}${this.script}" data-key="${this.key}" ${this.attributes}></script>`;
  }

  page() {
    return `<!doctype html><title>page</title>${this.head}${this.insert ?? this.tag}<body>${this.body}</body>`;
  }

  clear() {
    Object.assign(this, { attributes: "data-automated", insert: undefined, head: "", body: "", pages: {}, foreign: undefined, script: "/hc.js" });
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}
