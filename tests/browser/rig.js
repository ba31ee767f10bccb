// What the tests of the tracker share: a server, a gate before it, a site whose pages have the tracker, a browser, and what was sent.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach } from "node:test";
import { Site, launch, pause, visitor } from "./browser.js";
import { Gate } from "./gate.js";
import { Headcount } from "./headcount.js";

const PATIENCE_MS = 8_000;
/** After this, nothing more is expected. */
export const QUIET_MS = 150;
/** Retries twenty times as soon. */
export const FAST = "{ const slow = setTimeout; window.setTimeout = (run, ms, ...rest) => slow(run, ms / 20, ...rest); }";
/** The browser seems to be a person's. */
export const BY_HAND = "Object.defineProperty(navigator, 'webdriver', { value: false });";
/** Keeps calls until the script is there. */
export const STUB = "<script>window.headcount=window.headcount||function(){(headcount.q=headcount.q||[]).push(arguments)}</script>";

export let browser, context, gate, server, site;
/** What pages warned of. */
export let warnings = [];
/** The `external_id` of each event, in the order in which pages sent them. They arrive over several connections, in any order. */
let asked = [];

/** Starts all of it for the tests of a file. */
export function setUp(...settings) {
  before(async () => {
    server = await Headcount.start(...settings);
    gate = await Gate.start(server.port);
    site = await Site.start(gate.origin, server.key);
    browser = await launch();
  });

  beforeEach(() => {
    asked = [];
    warnings = [];
    gate.clear();
    site.clear();
  });

  afterEach(() => context?.close());

  after(async () => {
    await browser?.close();
    site?.stop();
    gate?.stop();
    await server?.stop();
  });
}

/** Opens a page as a new visitor. */
export async function open(path, script) {
  context = await visitor(browser, script);
  context.on("request", (request) => {
    const body = request.method() === "POST" && request.postData();
    if (body) asked.push(JSON.parse(body).external_id);
  });
  context.on("console", (message) => message.type() === "warning" && warnings.push(message.text()));
  const page = await context.newPage();
  await page.goto(path.startsWith("/") ? site.origin + path : path);
  return page;
}

export async function until(holds, what) {
  for (const end = Date.now() + PATIENCE_MS; !holds(); await pause(10)) {
    assert.ok(Date.now() < end, `${what}: ${JSON.stringify(gate.attempts)}`);
  }
}

/**
 * The events that were recorded, which are as many as expected, in the order in which they were sent, if that is known. What was under way when a page was left may have arrived
 * twice.
 */
export async function sent(count) {
  await until(() => gate.recorded.length >= count, `fewer than ${count} events`);
  await pause(QUIET_MS);
  assert.equal(gate.recorded.length, count, JSON.stringify(gate.recorded));
  assert.ok(gate.attempts.every(({ answer }) => !answer?.includes("dropped")));
  const place = ({ external_id }) => asked.indexOf(external_id);
  const events = gate.recorded;
  return events.every((event) => place(event) >= 0) ? events.sort((one, other) => place(one) - place(other)) : events;
}

export const paths = (events) => events.map(({ url }) => url.replace(site.origin, ""));
export const names = (events) => events.map(({ name }) => name);
export const stored = (page) => page.evaluate(() => [document.cookie, Object.keys(localStorage).sort(), Object.keys(sessionStorage).sort()]);
