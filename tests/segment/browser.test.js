// Segment's SDK for pages, as it is published, in a browser: pages on one origin, the server on another. Only its CDN is set.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Headcount } from "../browser/headcount.js";
import { launch, pause, visitor } from "../browser/browser.js";
import { Recorder } from "./recorder.js";

const SDK = readFileSync(fileURLToPath(new URL("node_modules/@segment/analytics-next/dist/umd/index.js", import.meta.url)));
const PATIENCE_MS = 15_000;
/** After this, nothing more is expected. */
const QUIET_MS = 500;
const BATCHING = { integrations: { "Segment.io": { deliveryStrategy: { strategy: "batching", config: { size: 3, timeout: 200 } } } } };

let browser, context, recorder, server, site;

before(async () => {
  server = await Headcount.start();
  recorder = await Recorder.start(server);
  recorder.origin = `http://stats.test:${recorder.port}`;
  site = createServer((asked, answer) => {
    if (asked.url === "/sdk.js") return answer.writeHead(200, { "content-type": "text/javascript" }).end(SDK);
    answer.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>shop</title><script src=/sdk.js></script>");
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  site.origin = `http://shop.test:${site.address().port}`;
  browser = await launch();
});

afterEach(() => context?.close());

after(async () => {
  await browser?.close();
  site?.close();
  site?.closeAllConnections();
  recorder?.stop();
  await server?.stop();
});

/** Opens a page with the SDK. Remembers every request that the page makes. */
async function open(key, options = {}) {
  recorder.requests = [];
  context = await visitor(browser);
  const page = await context.newPage();
  page.origins = new Set();
  context.on("request", (request) => page.origins.add(new URL(request.url()).origin));
  page.problems = [];
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(error.message));
  await page.goto(`${site.origin}/start?utm_source=news&utm_campaign=Spring`);
  await page.evaluate(
    ([writeKey, cdnURL, options]) => {
      window.analytics = AnalyticsNext.AnalyticsBrowser.load({ writeKey, cdnURL }, options);
    },
    [key, recorder.origin, options],
  );
  return page;
}

async function until(holds, what) {
  for (const end = Date.now() + PATIENCE_MS; !(await holds()); await pause(20)) {
    assert.ok(Date.now() < end, `${what}: ${JSON.stringify(recorder.requests)}`);
  }
}

for (const [kind, options, paths] of [
  ["one by one", {}, ["/v1/a", "/v1/g", "/v1/i", "/v1/p", "/v1/t"]],
  ["in batches", BATCHING, ["/v1/b"]],
]) {
  test(`messages of a page are recorded ${kind}, and nobody else hears of it`, async () => {
    const page = await open(server.key, options);
    const before = (await server.events()).length;
    await page.evaluate(async (user) => {
      await analytics.page("Start");
      await analytics.identify(user, { email: `${user}@acme.com` });
      await analytics.track("Order Completed", { revenue: 0.1 + 0.2, currency: "EUR" });
      await analytics.group("acme.com", { name: "Acme" });
      await analytics.alias(user, "earlier");
    }, kind);
    await until(async () => (await server.events()).length >= before + 5, "fewer than 5 events");
    await pause(QUIET_MS);
    const events = (await server.events()).slice(before);
    assert.deepEqual(events.map(({ name }) => name).sort(), ["Order Completed", "alias", "group", "identify", "page"]);

    const [viewed, order] = ["page", "Order Completed"].map((name) => events.find((event) => event.name === name));
    assert.deepEqual([viewed.url.split("?")[0], viewed.metadata.name], [`${site.origin}/start`, "Start"]);
    assert.deepEqual([viewed.browser, viewed.language, viewed.event_source, viewed.event_campaign], ["Chrome", "en-US", "news", "spring"]);
    assert.deepEqual([order.value, order.currency, order.user_id], [0.3, "EUR", kind]);
    assert.equal(order.anonymous_id, viewed.anonymous_id);

    const posts = recorder.of("POST", /^\/v1\//);
    assert.deepEqual([...new Set(posts.map(({ path }) => path))].sort(), paths);
    assert.ok(posts.every(({ status, headers }) => status === 200 && headers["content-type"].startsWith("text/plain")));
    assert.equal(recorder.of("GET", /settings$/).length, 1);
    assert.deepEqual([...page.origins].sort(), [site.origin, recorder.origin].sort());
    assert.deepEqual(page.problems, []);
  });
}

test("a page sees why a message was refused, and does not send it again", async () => {
  const page = await open(server.key);
  const long = await page.evaluate(() => analytics.track("x".repeat(101)).then(() => true));
  assert.ok(long);
  await pause(QUIET_MS * 2);
  assert.deepEqual(recorder.of("POST", /^\/v1\/t$/).map(({ status }) => status), [400]);
  assert.ok(!page.problems.some((problem) => problem.includes("CORS")), page.problems.join());
});

test("a wrong key is given up at once", async () => {
  const page = await open("pk_00000000000000000000000000000000");
  await page.evaluate(() => analytics.track("Never").catch(() => undefined) && undefined);
  await pause(QUIET_MS * 2);
  assert.deepEqual(recorder.of("GET", /settings$/).map(({ status }) => status), [404]);
  assert.ok(recorder.of("POST", /^\/v1\//).length <= 1);
});
