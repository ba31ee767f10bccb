// A visitor goes on through a site while the server is killed and starts again: nothing is counted twice, and everything that was
// acknowledged is counted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Site, launch, pause, visitor } from "./browser.js";
import { Gate } from "./gate.js";
import { Headcount } from "./headcount.js";

const NAVIGATIONS = 1_000;
const OUTAGE_MS = 1_000;
/** The longest time that the last event may be retried: three times, after 2, 4 and 8 s at most. */
const PATIENCE_MS = 15_000;

/** Kills the server in the middle, and starts it again. */
async function fail(server) {
  const began = Date.now();
  await server.kill();
  await pause(OUTAGE_MS);
  await server.serve();
  return Date.now() - began;
}

/** Opens every second page anew; the others are pages of an application. */
async function visit(page, site, number) {
  const path = `/page/${number}`;
  if (number % 2 === 0) await page.goto(site.origin + path, { waitUntil: "load" });
  else await page.evaluate((path) => history.pushState({}, "", path), path);
}

const unique = (list) => new Set(list).size;

async function settle(gate) {
  const isOpen = () => {
    const done = new Set(gate.attempts.filter(({ status }) => status === 202).map(({ event }) => event.external_id));
    return gate.attempts.some(({ event }) => !done.has(event.external_id));
  };
  for (const end = Date.now() + PATIENCE_MS; isOpen() && Date.now() < end; ) await pause(50);
}

test(`${NAVIGATIONS} navigations with an outage`, async (context) => {
  const server = await Headcount.start();
  const gate = await Gate.start(server.port);
  const site = await Site.start(gate.origin, server.key);
  site.clear();
  const browser = await launch();
  context.after(async () => {
    await browser.close();
    site.stop();
    gate.stop();
    await server.stop();
  });
  const page = await (await visitor(browser)).newPage();
  let outage;
  for (let number = 0; number < NAVIGATIONS; number += 1) {
    await visit(page, site, number);
    if (number === NAVIGATIONS / 2) outage = fail(server);
  }
  const outageMs = await outage;
  await settle(gate);

  const acknowledged = gate.attempts.filter(({ status }) => status === 202).map(({ event }) => event.external_id);
  const recorded = await server.events();
  const ids = new Set(recorded.map(({ external_id }) => external_id));
  const figures = await (await server.ask("/analytics/aggregate", { start_date: "2020-01-01", group_by: "name" })).json();
  context.diagnostic(`${recorded.length} counted, ${unique(acknowledged)} acknowledged, ${gate.attempts.length} attempts, out for ${outageMs} ms`);

  assert.equal(unique(recorded.map(({ url }) => url)), recorded.length, "a page was counted twice");
  assert.equal(ids.size, recorded.length, "an event was counted twice");
  assert.deepEqual(acknowledged.filter((id) => !ids.has(id)), [], "acknowledged, and not counted");
  assert.deepEqual(figures.rows.map(({ value, count }) => [value, count]), [["pageview", recorded.length]]);
  assert.ok(gate.attempts.some(({ status }) => status === undefined), "nobody noticed the outage");
  assert.ok(recorded.length <= NAVIGATIONS && recorded.length > NAVIGATIONS / 2);
});
