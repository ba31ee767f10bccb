// Segment's SDK for Node, as it is published: only its host is set.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Analytics } from "@segment/analytics-node";
import { Headcount } from "../browser/headcount.js";

const EVENTS = 1_000;
const OUTAGE_MS = 700;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let server;

before(async () => {
  server = await Headcount.start();
});

after(() => server?.stop());

/** An SDK that remembers its requests, the statuses of their answers, and what it gave up. */
function sdk(writeKey = server.key) {
  const analytics = new Analytics({ writeKey, host: server.url });
  const seen = { requests: [], statuses: [], errors: [] };
  analytics.on("http_request", (request) => seen.requests.push(request));
  analytics.on("http_response", ({ status }) => seen.statuses.push(status));
  analytics.on("error", (error) => seen.errors.push(error));
  return { analytics, seen };
}

async function revenue() {
  return (await server.ask("/revenue/metrics")).json();
}

async function recorded(name) {
  return (await server.events()).filter((event) => event.name === name);
}

test(`${EVENTS} events are counted exactly`, async () => {
  const { analytics, seen } = sdk();
  for (let number = 0; number < EVENTS; number += 1) {
    analytics.track({ userId: `user ${number % 100}`, event: "Signed Up", properties: { number } });
  }
  await analytics.closeAndFlush();
  assert.deepEqual([seen.errors, new Set(seen.statuses)], [[], new Set([200])]);
  assert.match(seen.requests[0].headers.Authorization, /^Basic /);
  const events = await recorded("Signed Up");
  assert.deepEqual([events.length, new Set(events.map(({ metadata }) => metadata.number)).size], [EVENTS, EVENTS]);
  // The SDK's own agent is nobody's.
  assert.ok(events.every(({ browser }) => !browser));
});

test("every call has its meaning", async () => {
  const { analytics, seen } = sdk();
  analytics.page({ anonymousId: "a-1", name: "Home", properties: { url: "https://shop.example/" } });
  analytics.identify({ anonymousId: "a-1", userId: "ada", traits: { email: "ada@acme.com" } });
  analytics.group({ userId: "ben", groupId: "globex.com", traits: { name: "Globex" } });
  analytics.screen({ userId: "ben", name: "Cart" });
  analytics.page({ anonymousId: "a-2" });
  analytics.alias({ previousId: "a-2", userId: "ada" });
  await analytics.closeAndFlush();
  assert.deepEqual(seen.errors, []);
  const ask = async (path) => {
    const answer = await fetch(server.url + path, { headers: { authorization: `Bearer ${server.initial.api_token}` } });
    return answer.json();
  };
  const profile = await ask("/identities/profile?email=ada%40acme.com");
  assert.deepEqual([profile.events, profile.pageviews], [4, 2]);
  assert.equal((await ask("/companies/lookup?domain=globex.com")).users, 1);
  assert.equal((await recorded("page")).find(({ anonymous_id }) => anonymous_id === "a-1").metadata.name, "Home");
});

test("an order that was paid back is one order and no revenue", async () => {
  const { analytics, seen } = sdk();
  const order = { userId: "ada", properties: { order_id: "o-1", revenue: 25, total: 27.5, currency: "USD" } };
  analytics.track({ ...order, event: "Checkout Started" });
  analytics.track({ ...order, event: "Order Completed" });
  analytics.track({ ...order, event: "Order Refunded", properties: { order_id: "o-1", total: 25, currency: "USD" } });
  await analytics.closeAndFlush();
  assert.deepEqual(seen.errors, []);
  const { total_revenue, orders } = await revenue();
  assert.deepEqual({ total_revenue, orders }, { total_revenue: 0, orders: 1 });
});

test("a server that is killed while events are sent counts each of them once", async (context) => {
  const { analytics, seen } = sdk();
  const isFirst = new Promise((resolve) => analytics.once("http_response", resolve));
  for (let number = 0; number < EVENTS; number += 1) {
    analytics.track({ userId: "kim", event: "Survived", messageId: `survived-${number}` });
    if (number % 50 === 49) await pause(1);
  }
  const flushed = analytics.closeAndFlush();
  await isFirst;
  await server.kill();
  const answeredBefore = seen.statuses.length;
  await pause(OUTAGE_MS);
  await server.serve();
  await flushed;
  const again = seen.requests.filter(({ headers }) => headers["X-Retry-Count"]);
  context.diagnostic(`${answeredBefore} batches were answered before, ${again.length} requests were sent again`);
  // While it starts, the server answers 503.
  assert.deepEqual([seen.errors, seen.statuses.filter((status) => status !== 200 && status !== 503)], [[], []]);
  assert.ok(again.length > 0, "nobody noticed the outage");
  const ids = (await recorded("Survived")).map(({ external_id }) => external_id);
  assert.deepEqual([ids.length, new Set(ids).size], [EVENTS, EVENTS]);
});

test("a wrong key is given up at once", async () => {
  const { analytics, seen } = sdk("pk_00000000000000000000000000000000");
  for (let number = 0; number < 30; number += 1) analytics.track({ userId: "ada", event: "Never" });
  await analytics.closeAndFlush();
  assert.deepEqual([seen.statuses, seen.errors.length], [[401, 401], 30]);
  assert.deepEqual(await recorded("Never"), []);
});
