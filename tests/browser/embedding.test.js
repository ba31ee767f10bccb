// The ways in which pages load the tracker, and where: tag managers, consent managers, frames, other origins, pages that are rendered in advance.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pause } from "./browser.js";
import { BY_HAND, QUIET_MS, STUB, context, gate, names, open, paths, sent, server, setUp, site, stored, until, warnings } from "./rig.js";

setUp();

/** What Google Tag Manager makes of a tag: an element without the attributes that it doesn't know, inserted before the first script. */
const managed = (query) => `<script>(function(d,s){var f=d.getElementsByTagName(s)[0],j=d.createElement(s);j.async=true;j.src="${site.stats}/hc.js?${query}";f.parentNode.insertBefore(j,f)})(document,"script")</script>`;

test("a tag manager drops attributes: the key stands in the address", async () => {
  site.insert = managed("key=" + site.key);
  const page = await open("/?gclid=1", BY_HAND);
  await page.evaluate(() => history.pushState({}, "", "/next"));
  assert.deepEqual(paths(await sent(2)), ["/?gclid=1", "/next"]);
  assert.equal(gate.attempts[0].url, "/i?pk=" + site.key);
  assert.deepEqual(warnings, []);
});

test("an address with the key has the other attributes, too", async () => {
  site.head = STUB + '<script>headcount("identify","ada")</script>';
  site.insert = managed(`v=2&key=${site.key}&automated&ids=device&query=all&status=404`);
  const page = await open("/?page=2");
  const [identify, pageview] = await sent(2);
  assert.deepEqual([identify.name, pageview.name, pageview.user_id, pageview.metadata], ["identify", "pageview", "ada", { status: 404 }]);
  assert.deepEqual(paths([pageview]), ["/?page=2"]);
  assert.deepEqual(await stored(page), ["", ["headcount_id", "headcount_user"], []]);
});

test("an address without the key is no list of attributes, and attributes win", async () => {
  site.insert = `<script defer src="${site.stats}/hc.js?query=all&hash=3f" data-automated data-key="${site.key}"></script>`;
  await open("/?page=2#part");
  assert.deepEqual(paths(await sent(1)), ["/"]);
  await context.close();
  gate.clear();
  site.insert = `<script defer src="${site.stats}/hc.js?key=pk_other" data-automated data-key="${site.key}"></script>`;
  await open("/");
  await sent(1);
});

for (const [what, accept] of [
  ["replaces a blocked script", "const copy = blocked.cloneNode(true); copy.type = 'text/javascript'; blocked.replaceWith(copy);"],
  ["inserts a copy of it", "const copy = document.createElement('script'); for (const { name, value } of blocked.attributes) if (name !== 'type') copy.setAttribute(name, value); document.head.append(copy); document.head.append(copy.cloneNode());"],
]) {
  test(`a consent manager ${what}: nothing before, everything after`, async () => {
    site.foreign = `<a href="${site.origin}/">go</a>`;
    site.head = STUB + '<script>headcount("identify","ada");headcount("set",{pc:"analytics"})</script>';
    site.insert = `<script type="text/plain" data-category="analytics" src="${site.stats}/hc.js" data-key="${site.key}" data-automated data-ids="device"></script>`;
    const page = await open(site.other + "/");
    await page.click("a");
    await page.waitForURL(site.origin + "/");
    await page.evaluate(() => {
      history.pushState({}, "", "/pricing");
      headcount("seen");
    });
    await pause(QUIET_MS);
    assert.equal(gate.attempts.length, 0);
    assert.deepEqual(await stored(page), ["", [], []]);
    await page.evaluate(`{ const blocked = document.querySelector("script[type='text/plain']"); ${accept} }`);
    const events = await sent(3);
    assert.deepEqual(names(events), ["identify", "seen", "pageview"]);
    const [, seen, pageview] = events;
    assert.deepEqual([pageview.user_id, pageview.pc, pageview.referrer], ["ada", "analytics", site.other + "/"]);
    assert.deepEqual([paths([pageview]), seen.user_id], [["/pricing"], "ada"]);
    await page.evaluate(() => history.pushState({}, "", "/docs"));
    await sent(4);
  });
}

test("sites of two origins count into one project, each with its own ids", async () => {
  site.attributes += ' data-ids="device"';
  site.body = `<a href="${site.other}/shop">on</a>`;
  site.foreign = `<!doctype html><title>shop</title>${site.tag}`;
  const page = await open("/");
  await page.click("a");
  await page.waitForURL(site.other + "/shop");
  const [first, second] = await sent(2);
  assert.deepEqual([first.url, second.url, second.referrer], [site.origin + "/", site.other + "/shop", site.origin + "/"]);
  assert.notEqual(first.anonymous_id, second.anonymous_id);
  await page.evaluate(() => history.back()).catch(() => {});
  assert.equal((await sent(3))[2].anonymous_id, first.anonymous_id);
});

test("an origin that the project does not list is not counted", async () => {
  const project = `/projects/${server.initial.project_id}`;
  await server.manage("PATCH", project, { allowed_origins: [site.origin] });
  try {
    site.body = `<a href="${site.other}/shop">on</a>`;
    site.foreign = `<!doctype html><title>shop</title>${site.tag}`;
    const page = await open("/");
    await page.click("a");
    await until(() => gate.attempts.some(({ status }) => status === 403), "a refusal");
    assert.deepEqual(paths(await sent(1)), ["/"]);
  } finally {
    await server.manage("PATCH", project, { allowed_origins: [] });
  }
});

test("frames with the tag are pages of their own", async () => {
  const framed = (extra = "") => `<!doctype html><title>framed</title>${extra}${site.tag}`;
  site.attributes += ' data-ids="device"';
  site.foreign = framed();
  site.pages["/inner"] = framed();
  site.pages["/boxed"] = framed();
  site.pages["/"] = `<!doctype html>${site.tag}<iframe src="/inner"></iframe><iframe src="${site.other}/widget"></iframe>
    <iframe src="/boxed" sandbox="allow-scripts"></iframe><iframe srcdoc='${site.tag}'></iframe>`;
  await open("/");
  const events = await sent(4);
  const of = (path) => events.find(({ url }) => url.endsWith(path));
  assert.deepEqual([of("/").referrer, of("/inner").referrer, of("/boxed").referrer], [undefined, undefined, undefined]);
  assert.equal(of("/widget").referrer, site.origin + "/");
  assert.equal(of("/inner").anonymous_id, of("/").anonymous_id);
  // A frame without an origin has no storage.
  assert.ok(of("/boxed").anonymous_id && of("/boxed").anonymous_id !== of("/").anonymous_id);
});

test("what waits when a page is kept in memory is counted once", async () => {
  site.foreign = "<title>other</title>";
  const page = await open("/first");
  await sent(1);
  await page.evaluate(() => addEventListener("pageshow", ({ persisted }) => (document.title = "persisted " + persisted)));
  gate.fault = (event) => (event.name === "kept" && gate.attempts.filter(({ event: { name } }) => name === "kept").length <= 1 ? 503 : undefined);
  await page.evaluate(() => headcount("kept"));
  await until(() => gate.attempts.some(({ event }) => event.name === "kept"), "the first attempt");
  await page.goto(site.other + "/");
  await page.evaluate(() => history.back()).catch(() => {});
  await page.waitForFunction(() => document.title === "persisted true");
  await sent(3);
  await pause(2_500);
  assert.deepEqual(names(await sent(3)).sort(), ["kept", "pageview", "pageview"]);
});

// A driven browser may fetch these pages without rendering them: tracker.test.js has the events of a page that is rendered.
test("of pages that speculation rules name, those that are shown are counted, once", async () => {
  site.attributes += " data-local";
  site.local = `http://localhost:${site.port}`;
  const rules = JSON.stringify({ prerender: [{ source: "list", urls: ["/next", "/never"], eagerness: "immediate" }] });
  site.pages["/start"] = `<!doctype html><title>start</title><script type="speculationrules">${rules}</script><a href="/next">next</a>`;
  site.head = STUB + "<script>headcount('identify', 'ada')</script>";
  const asked = site.asked.length;
  const page = await open(site.local + "/start");
  await until(() => site.asked.slice(asked).includes("/next"), "the page in advance");
  await pause(1_000);
  assert.equal(gate.attempts.length, 0);
  await page.click("a");
  await page.waitForURL("**/next");
  const events = await sent(2);
  assert.deepEqual([names(events), events[1].url, events[1].user_id], [["identify", "pageview"], site.local + "/next", "ada"]);
});
