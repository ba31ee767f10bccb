// How long after its answer an event is on the screen: node benches/screen.mjs [--rate N] [--seconds N] [--tabs N]
//
// A server of its own records events of known users at a rate, in batches. Beside them, single events of new users are sent one after the other: each raises the
// number of users online by one. The page of live figures notes when that number changes in its document. Printed is the time between the answer to a
// single event and its number, in the tab that reads the stream and in all. The exit code is 1 if a number never came, a tab ended with another
// number, or the tabs had more than one stream.
//
// Needs `npm ci` in tests/browser, and chromium. HEADCOUNT is the program; without it, that of the release build.

import { parseArgs } from "node:util";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TARGET = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../target", import.meta.url));
process.env.HEADCOUNT ??= join(TARGET, "release", "headcount");
const { Headcount } = await import("../tests/browser/headcount.js");
const { launch } = await import("../tests/browser/browser.js");

const { values } = parseArgs({ options: { rate: { type: "string", default: "1000" }, seconds: { type: "string", default: "60" }, tabs: { type: "string", default: "8" } } });
const [RATE, SECONDS, TABS] = [values.rate, values.seconds, values.tabs].map(Number);
// After five minutes without an event a user is no longer online.
if (!(RATE >= 1 && RATE <= 20_000 && SECONDS >= 1 && SECONDS <= 200 && TABS >= 1 && TABS <= 32)) throw new Error("a rate of 1 to 20000, 1 to 200 seconds, 1 to 32 tabs");
const TARGET_MS = 500;
const USERS = 500;
const BATCHES_A_SECOND = 20;
const PROBE_MS = 100;
const PATIENCE_MS = 30_000;
const FIGURE = "[data-figure=users_5m]";
const AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

const now = () => performance.timeOrigin + performance.now();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

async function post(server, path, body) {
  const headers = { "x-service-pk": server.key, "content-type": "application/json", "user-agent": AGENT };
  const answer = await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (answer.status !== 202) throw new Error(`${path}: ${answer.status} ${text}`);
}

const pageview = (user_id, number) => ({ name: "pageview", user_id, url: `https://shop.example/page-${number % 50}` });

/** Sends events of known users until the end. Returns how many. */
async function load(server, end) {
  const began = now();
  let sent = 0;
  for (let turn = 1; now() < end; turn += 1) {
    const due = Math.round((RATE * turn) / BATCHES_A_SECOND) - sent;
    const events = Array.from({ length: due }, (_, index) => pageview(`user-${(sent + index) % USERS}`, sent + index));
    if (due) await post(server, "/i/batch", { events });
    sent += due;
    await sleep(began + (turn * 1000) / BATCHES_A_SECOND - now());
  }
  return sent / ((now() - began) / 1000);
}

/** Sends events of new users, one after the other. Returns when each was answered. */
async function probes(server, end) {
  const answered = [];
  while (now() < end) {
    const began = now();
    await post(server, "/track", pageview(`new-${answered.length}`, 0));
    answered.push(now());
    await sleep(began + PROBE_MS - now());
  }
  return answered;
}

/** Runs in a page: notes each number, and when it was in the document. */
function watch(figure) {
  const seen = (window.seen = []);
  const note = () => {
    const number = Number(document.querySelector(figure)?.textContent.replace(/\D/g, ""));
    if (seen.at(-1)?.[1] !== number) seen.push([performance.timeOrigin + performance.now(), number]);
  };
  new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
  note();
}

const shows = (page, number) =>
  page.waitForFunction(([figure, number]) => Number(document.querySelector(figure)?.textContent.replace(/\D/g, "")) === number, [FIGURE, number], { timeout: PATIENCE_MS });

function percentile(sorted, share) {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

function report(name, delays) {
  const sorted = delays.toSorted((a, b) => a - b);
  const [p50, p99, most] = [percentile(sorted, 0.5), percentile(sorted, 0.99), sorted.at(-1)];
  console.log(`${name}: ${sorted.length} numbers, p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, at most ${most.toFixed(0)} ms`);
  return p99;
}

/** How long after each answer a tab showed it. */
function delays(seen, answered) {
  return answered.map((at, index) => {
    const shown = seen.find(([, number]) => number >= USERS + index + 1);
    if (!shown) throw new Error(`the number of user ${index + 1} never came`);
    return Math.max(0, shown[0] - at);
  });
}

async function main(server, browser) {
  await post(server, "/i/batch", { events: Array.from({ length: USERS }, (_, index) => pageview(`user-${index}`, index)) });
  const context = await browser.newContext({ locale: "en-US" });
  let streams = 0;
  context.on("request", (request) => (streams += new URL(request.url()).pathname.endsWith("/live") && request.resourceType() === "eventsource"));
  const link = execFileSync(process.env.HEADCOUNT, ["login", "--data-dir", server.dir], { encoding: "utf8" }).match(/http\S+/)[0];
  const pages = [await context.newPage()];
  await pages[0].goto(link);
  await pages[0].getByRole("link", { name: "Live", exact: true }).click();
  await shows(pages[0], USERS);
  while (pages.length < TABS) {
    const page = await context.newPage();
    await page.goto(pages[0].url());
    await shows(page, USERS);
    pages.push(page);
  }
  await Promise.all(pages.map((page) => page.evaluate(watch, FIGURE)));
  const end = now() + SECONDS * 1000;
  const [rate, answered] = await Promise.all([load(server, end), probes(server, end)]);
  await Promise.all(pages.map((page) => shows(page, USERS + answered.length)));
  const tabs = await Promise.all(pages.map(async (page) => delays(await page.evaluate(() => window.seen), answered)));
  console.log(`${rate.toFixed(0)} events/s of ${USERS} users beside them, for ${SECONDS} s; ${TABS} tabs with ${streams} stream(s)`);
  report("the first tab", tabs[0]);
  const p99 = report("all tabs", tabs.flat());
  console.log(`target: p99 <= ${TARGET_MS} ms: ${p99 <= TARGET_MS ? "met" : "missed"}`);
  if (streams !== 1) throw new Error(`${streams} streams instead of one`);
}

const server = await Headcount.start();
const browser = await launch();
try {
  await main(server, browser);
} finally {
  await browser.close();
  await server.stop();
}
