// The tracker in a browser: pages on one origin, the server on another.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pause } from "./browser.js";
import { BY_HAND, FAST, QUIET_MS, STUB, context, gate, names, open, paths, sent, server, setUp, site, stored, until, warnings } from "./rig.js";

const NO_NAVIGATION = "Object.defineProperty(window, 'navigation', { value: undefined });";

setUp("--script-path=/app.js", "--collect-path=/app");

test("a page is sent once, with all that is documented", async () => {
  site.foreign = `<a href="${site.origin}/pricing?utm_source=news">go</a>`;
  const page = await open(site.other + "/blog?secret=1");
  await page.click("a");
  const [event] = await sent(1);
  assert.equal(gate.attempts.length, 1);
  const { external_id, language, screen, ...rest } = event;
  assert.deepEqual(rest, { name: "pageview", url: site.origin + "/pricing?utm_source=news", referrer: site.other + "/" });
  assert.match(external_id, /^\d+(-\d+){3}$/);
  assert.deepEqual([language, screen], ["en-US", "1280x720"]);
  const [{ headers, url }] = gate.attempts;
  assert.equal(headers["content-type"], "text/plain;charset=UTF-8");
  assert.deepEqual([headers.cookie, url], [undefined, "/i?pk=" + server.key]);
  const recorded = (await server.events()).find((recorded) => recorded.external_id === external_id);
  assert.deepEqual([recorded.name, recorded.browser, recorded.event_source], ["pageview", "Chrome", "news"]);
});

test("a request outlives its page, and has no cookies", async () => {
  const page = await open("/", "const send = fetch; window.fetch = (url, options) => send(url, (window.options = options));");
  await sent(1);
  const { keepalive, credentials } = await page.evaluate(() => options);
  assert.deepEqual([keepalive, credentials], [true, "omit"]);
});

for (const [kind, script] of [["the Navigation API", undefined], ["a wrapped history", NO_NAVIGATION]]) {
  test(`pages of an application are counted by ${kind}`, async () => {
    const page = await open("/", script);
    assert.equal(await page.evaluate(() => "navigation" in window && !!window.navigation), !script);
    await page.evaluate(() => {
      history.pushState({}, "", "/a");
      history.pushState({}, "", "/a?tab=2");
      history.replaceState({}, "", "/a?tab=3");
      history.replaceState({}, "", "/b");
      location.hash = "#part";
    });
    await sent(3);
    await page.evaluate(() => history.go(-3));
    assert.deepEqual(paths(await sent(4)), ["/", "/a", "/b", "/"]);
    assert.deepEqual(await page.evaluate(() => history.pushState({ kept: 1 }, "", "/c") ?? history.state), { kept: 1 });
    await sent(5);
  });
}

for (const [kind, script] of [["the Navigation API", undefined], ["a wrapped history", NO_NAVIGATION]]) {
  test(`an address that is corrected is no second page by ${kind}`, async () => {
    site.body = `<script>addEventListener("load", () => /[^/]$/.test(location.pathname) && history.replaceState({}, "", location.pathname + "/" + location.search))</script>`;
    const page = await open("/docs?ref=a", script);
    await page.waitForURL("**/docs/?ref=a");
    assert.deepEqual(paths(await sent(1)), ["/docs?ref=a"]);
    await page.evaluate(() => {
      history.pushState({}, "", "/docs");
      history.pushState({}, "", "/docs/more/");
      history.replaceState({}, "", "/docs/more");
      history.pushState({}, "", "/");
      history.replaceState({}, "", "/?tab=1");
      history.pushState({}, "", "/Docs");
    });
    assert.deepEqual(paths(await sent(4)), ["/docs?ref=a", "/docs/more/", "/", "/Docs"]);
  });
}

test("data-hash makes pages of fragments", async () => {
  site.attributes += " data-hash";
  const page = await open("/app#/users/5?token=1");
  await page.evaluate(() => (location.hash = "#!/users/6"));
  await page.evaluate(() => (location.hash = "#!/users/6?again"));
  await page.evaluate(() => (location.hash = ""));
  assert.deepEqual(paths(await sent(3)), ["/app/users/5", "/app/users/6", "/app"]);
});

test("a page that comes back from memory is counted", async () => {
  site.foreign = "<title>other</title>";
  const page = await open("/first");
  await sent(1);
  await page.evaluate(() => addEventListener("pageshow", ({ persisted }) => (document.title = "persisted " + persisted)));
  await page.goto(site.other + "/");
  await page.evaluate(() => history.back()).catch(() => {});
  const [, again] = await sent(2);
  assert.deepEqual([again.url, again.referrer], [site.origin + "/first", undefined]);
  // It sends as before, not as a page that is left.
  let failures = 1;
  gate.fault = () => (failures-- > 0 ? 503 : undefined);
  await page.evaluate(() => history.pushState({}, "", "/second"));
  await sent(3);
});

test("a page that is rendered in advance waits until it is shown", async () => {
  const page = await open("/", "let early = true; Object.defineProperty(document, 'prerendering', { get: () => early }); window.show = () => { early = false; document.dispatchEvent(new Event('prerenderingchange')); };");
  await page.evaluate(() => headcount("seen"));
  await pause(QUIET_MS);
  assert.equal(gate.attempts.length, 0);
  await page.evaluate(() => show());
  assert.deepEqual((await sent(2)).map(({ name }) => name), ["pageview", "seen"]);
});

test("only the first pageview has the referrer, and only one of another site", async () => {
  site.foreign = `<a href="${site.origin}/a">go</a>`;
  site.body = `<a href="/c?secret=1">on</a>`;
  const page = await open(site.other + "/");
  await page.click("a");
  await sent(1);
  await page.evaluate(() => history.pushState({}, "", "/b"));
  await sent(2);
  await page.reload();
  await sent(3);
  await page.click("a");
  const events = await sent(4);
  assert.deepEqual(events.map(({ referrer }) => referrer), [site.other + "/", undefined, undefined, undefined]);
});

test("of the query, only attribution is sent", async () => {
  const kept = "utm_source=a&UTM_Medium=b&utm_campaign=c%26d&utm_term=e&utm_content=f&ref=g&source=h&gclid=1&msclkid=2&fbclid=3&ttclid=4&twclid=5&li_fat_id=6" +
    "&wbraid=a%20b&GBRAID=8&yclid=9&epik=10&rdt_cid=11&ScCid=12&igshid=13&igsh=14==";
  await open(`/?email=ada%40example.com&${kept}&token=1&preference=2&utm_user=3&clid=4&xgclid=5&epik_=6&ep%69k`);
  assert.deepEqual(paths(await sent(1)), ["/?" + kept]);
});

test("data-query=all sends all of it", async () => {
  site.attributes += ' data-query="all"';
  await open("/?page=2&utm_source=a#part");
  assert.deepEqual(paths(await sent(1)), ["/?page=2&utm_source=a"]);
});

test("clicks on links to other sites are sent, and followed", async () => {
  site.attributes += " data-outbound";
  site.body = `<a id=out href="${site.other}/x?token=1#part"><b>out</b></a><a id=in href="/in">in</a><a id=mail href="mailto:a@b.test">mail</a>`;
  let page = await open("/");
  await page.evaluate(() => document.body.addEventListener("click", (event) => event.stopPropagation()));
  const opened = context.waitForEvent("page");
  await page.click("#out b", { button: "middle" });
  assert.equal((await opened).isClosed(), false);
  await page.click("#out b", { button: "right" });
  await page.click("#mail");
  await page.click("#out b");
  await page.waitForURL(site.other + "/**");
  const expected = [undefined, { url: site.other + "/x" }, { url: site.other + "/x" }];
  assert.deepEqual((await sent(3)).map(({ metadata }) => metadata), expected);
  await page.goto(site.origin);
  await page.click("#in");
  await page.waitForURL("**/in");
  await sent(5);
});

test("downloads are sent, and load", async () => {
  site.attributes += " data-downloads data-outbound";
  site.body = `<a id=a href="/files/a.PDF?v=1">a</a><a id=b href="/files/b.odd" download>b</a><a id=c href="#c.html">c</a>`;
  let page = await open("/");
  for (const id of ["#a", "#b"]) await Promise.all([page.waitForEvent("download"), page.click(id)]);
  await page.click("#c");
  const files = (events) => events.filter(({ name }) => name === "download").map(({ metadata }) => metadata.url.replace(site.origin, ""));
  assert.deepEqual(files(await sent(3)), ["/files/a.PDF", "/files/b.odd"]);
  await context.close();
  gate.clear();
  site.attributes = 'data-automated data-downloads="odd, xyz"';
  site.body = `<a id=a href="/files/a.pdf">a</a><a id=b href="/files/b.xyz">b</a>`;
  page = await open("/");
  for (const id of ["#a", "#b"]) await Promise.all([page.waitForEvent("download"), page.click(id)]);
  assert.deepEqual(files(await sent(2)), ["/files/b.xyz"]);
});

test("without their attributes, neither is sent", async () => {
  site.body = `<a id=a href="/files/a.pdf">a</a><a id=b target=_blank href="${site.other}">b</a>`;
  const page = await open("/");
  await Promise.all([page.waitForEvent("download"), page.click("#a")]);
  await page.click("#b");
  await sent(1);
});

test("data-status tells that a page is missing", async () => {
  site.attributes += ' data-status="404"';
  const page = await open("/gone");
  await page.evaluate(() => history.pushState({}, "", "/found"));
  assert.deepEqual((await sent(2)).map(({ metadata }) => metadata), [{ status: 404 }, undefined]);
});

test("elements and forms send the events of their attributes", async () => {
  site.body = `<button data-headcount-event="sign up" data-headcount-plan="pro" data-headcount-seat-count="3"><i>go</i></button>
    <form action="/done" data-headcount-event="search" data-headcount-where="top"><input name=q required><button id=submit>search</button></form>`;
  const page = await open("/");
  await page.click("button i");
  await page.click("input");
  await page.click("#submit");
  assert.deepEqual((await sent(2))[1].metadata, { plan: "pro", "seat-count": "3" });
  await page.fill("input", "word");
  await page.click("#submit");
  await page.waitForURL("**/done?q=word");
  const form = (await sent(4)).find(({ name }) => name === "search");
  assert.deepEqual([form.metadata, form.url], [{ where: "top" }, site.origin + "/"]);
});

for (const [what, body] of [
  ["around its input", '<label data-headcount-event="agreed"><b>Agree</b> <input type=checkbox></label>'],
  ["of a marked input", '<label><b>Agree</b> <input type=checkbox data-headcount-event="agreed"></label>'],
  ["before its input", '<label for=a data-headcount-event="agreed"><b>Agree</b></label><input id=a type=checkbox data-headcount-event="agreed">'],
  ["in something marked", '<div data-headcount-event="agreed"><label for=a><b>Agree</b></label><input id=a type=checkbox></div>'],
]) {
  test(`a click on a label ${what} is one`, async () => {
    site.body = body;
    const page = await open("/");
    const agreed = (count) => sent(1 + count).then((events) => assert.deepEqual(names(events).slice(1), Array(count).fill("agreed")));
    await page.click("b");
    assert.ok(await page.isChecked("input"));
    await agreed(1);
    await page.click("b");
    await agreed(2);
    await page.click("input");
    await agreed(3);
    await page.focus("input");
    await page.keyboard.press("Space");
    await agreed(4);
    await page.click("input", { clickCount: 2, delay: 1 });
    await agreed(6);
  });
}

test("a label that passes nothing on counts, and its input after it", async () => {
  site.body = '<label data-headcount-event="agreed"><b>Agree</b> <a href="#terms">terms</a> <input type=checkbox></label>';
  const page = await open("/");
  await page.click("a");
  await page.click("input");
  await page.evaluate(() => document.querySelector("b").addEventListener("click", (event) => event.preventDefault()));
  await page.click("b");
  await page.click("input");
  await page.evaluate(() => (document.querySelector("input").disabled = true));
  await page.click("b", { force: true });
  assert.equal((await sent(6)).filter(({ name }) => name === "agreed").length, 5);
});

test("programs that drive a browser are not counted, unless data-automated", async () => {
  site.attributes = "";
  for (const script of ["", ...["_phantom", "callPhantom", "Cypress"].map((name) => `${BY_HAND} window.${name} = {};`)]) {
    await open("/", script);
    await pause(QUIET_MS);
    await context.close();
  }
  assert.equal(gate.attempts.length, 0);
  await open("/", BY_HAND);
  await sent(1);
});

test("whoever opts out is not counted, until they opt in", async () => {
  const page = await open("/#headcount-ignore");
  await page.evaluate(() => headcount("event"));
  await page.goto(site.origin + "/later");
  await page.evaluate(() => headcount("event"));
  await pause(QUIET_MS);
  assert.equal(gate.attempts.length, 0);
  assert.equal(await page.evaluate(() => localStorage.headcount_ignore), "1");
  await page.goto(site.origin + "/again#headcount-count");
  assert.deepEqual(paths(await sent(1)), ["/again"]);
  await page.evaluate(() => localStorage.setItem("headcount_ignore", "true"));
  await page.evaluate(() => headcount("event"));
  await sent(1);
});

test("Global Privacy Control is passed on", async () => {
  await open("/", "Object.defineProperty(navigator, 'globalPrivacyControl', { value: true });");
  assert.equal((await sent(1))[0].ps, "gpc");
});

test("a developer's own machine is not counted, unless data-local", async () => {
  const local = `http://127.0.0.1:${site.port}`;
  await open(local + "/");
  await pause(QUIET_MS);
  await context.close();
  await open(`http://localhost:${site.port}/`);
  await pause(QUIET_MS);
  await context.close();
  assert.equal(gate.attempts.length, 0);
  site.attributes += " data-local";
  await open(local + "/");
  await sent(1);
});

test("identify names who the next events are of, until they sign out", async () => {
  const page = await open("/");
  await page.evaluate(() => {
    headcount("before");
    headcount("identify", 42, { email: "ada@example.com" });
    headcount("after", { plan: "pro" });
    headcount("identify");
    headcount("last");
  });
  const [, first, identify, after, last] = await sent(5);
  assert.deepEqual([first.user_id, identify.user_id, after.user_id, last.user_id], [undefined, "42", "42", undefined]);
  assert.deepEqual([identify.name, identify.metadata, after.metadata], ["identify", { email: "ada@example.com" }, { plan: "pro" }]);
});

test("group and set are on the next events", async () => {
  const page = await open("/");
  await page.evaluate(() => {
    headcount("set", { channel: "web", pc: "analytics" });
    headcount("group", "acme.com", { name: "Acme" });
    headcount("group", 7, { name: "Seven" }, "team");
    headcount("event", {}, { channel: "other", notify: false });
  });
  const [, company, team, event] = await sent(4);
  assert.deepEqual([company.group_id, company.group_type, company.metadata, company.channel], ["acme.com", undefined, { name: "Acme" }, "web"]);
  assert.deepEqual([team.group_id, team.group_type, event.group_id, event.group_type], ["7", "team", "7", "team"]);
  assert.deepEqual([event.channel, event.pc, event.notify], ["other", "analytics", false]);
});

test("whoever signs out takes the company along, and nothing that the page has set", async () => {
  const page = await open("/");
  await page.evaluate(() => {
    headcount("set", { pc: "" });
    headcount("identify", "ada");
    headcount("group", "acme.com");
    headcount("identify");
    headcount("after");
  });
  const [, , , after] = await sent(4);
  assert.deepEqual([after.pc, after.user_id, after.group_id], ["", undefined, undefined]);
});

test("revenue is counted once an order", async () => {
  const page = await open("/");
  const revenue = async () => (await server.ask("/revenue/metrics")).json();
  const earlier = await revenue();
  await page.evaluate(() => {
    headcount("revenue", 49.9, "USD", { plan: "pro" }, { external_id: "order-1" });
    headcount("revenue", 0.2);
  });
  const [, order] = await sent(3);
  assert.deepEqual([order.value, order.currency, order.metadata, order.external_id], [49.9, "USD", { plan: "pro" }, "order-1"]);
  await page.evaluate(() => headcount("revenue", 49.9, "USD", {}, { external_id: "order-1" }));
  await until(() => gate.attempts.at(-1).answer?.includes("duplicate\":true"), "the same order");
  const later = await revenue();
  assert.deepEqual([later.total_revenue - earlier.total_revenue, later.orders - earlier.orders], [50.1, 2]);
});

test("calls before the script is loaded run before the first pageview", async () => {
  site.head = STUB + '<script>headcount("identify","ada");headcount("set",{channel:"web"});headcount("early",{a:1})</script>';
  await open("/");
  const events = await sent(3);
  assert.deepEqual(names(events), ["identify", "early", "pageview"]);
  assert.deepEqual(events.map(({ user_id }) => user_id), ["ada", "ada", "ada"]);
  assert.deepEqual([events[0].channel, events[1].channel, events[1].metadata, events[2].channel], [undefined, "web", { a: 1 }, "web"]);
  const ids = events.map(({ external_id }) => external_id);
  const recorded = (await server.events()).filter(({ external_id }) => ids.includes(external_id));
  assert.deepEqual(recorded.map(({ user_id }) => user_id), ["ada", "ada", "ada"]);
});

test("a pageview that waited for the script is the first", async () => {
  site.foreign = `<a href="${site.origin}/a">go</a>`;
  site.head = STUB + '<script>headcount("pageview",{variant:"b"})</script>';
  const page = await open(site.other + "/");
  await page.click("a");
  const [event] = await sent(1);
  assert.deepEqual([event.metadata, event.referrer], [{ variant: "b" }, site.other + "/"]);
});

for (const [what, fault] of [["503", 503], ["a network error", "refuse"]]) {
  test(`after ${what}, an event is sent again`, async () => {
    gate.fault = () => (gate.attempts.length <= 2 ? fault : undefined);
    await open("/", FAST);
    await sent(1);
    assert.equal(new Set(gate.attempts.map(({ event }) => event.external_id)).size, 1);
    assert.equal(gate.attempts.length, 3);
  });
}

test("an event whose answer is lost is counted once", async () => {
  gate.fault = () => (gate.attempts.length <= 2 ? "lose" : undefined);
  await open("/", FAST);
  await until(() => gate.attempts.at(-1)?.status === 202, "an answer");
  assert.equal(JSON.parse(gate.attempts.at(-1).answer).status, "duplicate");
  const id = gate.attempts[0].event.external_id;
  assert.equal((await server.events()).filter(({ external_id }) => external_id === id).length, 1);
});

test("what the server refuses is a warning, with its words", async () => {
  const page = await open("/");
  await page.evaluate(() => {
    headcount("x".repeat(200));
    headcount("fine");
  });
  await until(() => gate.attempts.length === 3 && gate.attempts.every(({ answer }) => answer), "three answers");
  await until(() => warnings.length > 0, "a warning");
  await pause(QUIET_MS);
  const [{ answer }] = gate.attempts.filter(({ status }) => status === 400);
  assert.equal(gate.attempts.length, 3);
  assert.equal(warnings.length, 1, warnings.join());
  assert.ok(warnings[0].includes("headcount: 400") && warnings[0].includes(JSON.parse(answer).error.message), warnings[0]);
});

test("a key that is not known is a warning", async () => {
  site.insert = `<script defer src="${site.stats}/hc.js" data-automated data-key="pk_unknown"></script>`;
  await open("/");
  await until(() => warnings.length > 0, "a warning");
  await pause(QUIET_MS);
  assert.equal(warnings.length, 1, warnings.join());
  assert.match(warnings[0], /headcount: 401 .*the public key is not known/);
});

test("an event that is refused again and again is one warning", async () => {
  gate.fault = () => 429;
  await open("/", FAST);
  await until(() => gate.attempts.length === 4, "three retries");
  await pause(1_000);
  assert.equal(warnings.length, 1, warnings.join());
  assert.match(warnings[0], /headcount: 429/);
});

test("a script without a key says so, sends nothing and breaks nothing", async () => {
  site.head = STUB;
  site.insert = `<script defer src="${site.stats}/hc.js" data-automated></script>`;
  site.body = '<script type="module">headcount("early"); document.title = "fine";</script>';
  const page = await open("/");
  await page.evaluate(() => headcount("later"));
  await pause(QUIET_MS);
  assert.deepEqual([gate.attempts.length, await page.title()], [0, "fine"]);
  assert.match(warnings.join(), /^headcount: .*data-key[^,]*$/);
  // A second script that has it sends what waits.
  await page.evaluate(([src, key]) => {
    const script = document.createElement("script");
    Object.assign(script, { src }).dataset.key = key;
    script.dataset.automated = "";
    document.head.append(script);
  }, [site.stats + "/hc.js", site.key]);
  assert.deepEqual(names(await sent(3)), ["early", "later", "pageview"]);
});

for (const [clock, off_ms] of [["a right clock", 0], ["a clock that is a day behind", -86_400_000], ["a clock that is three hours ahead", 10_800_000], ["a clock of 1970", -1e12 * 1.7]]) {
  test(`an event that is sent again keeps its time, with ${clock}`, async () => {
    gate.fault = () => (gate.attempts.length <= 1 ? 503 : undefined);
    await open("/", `{ const right = Date.now; Date.now = () => right() + ${off_ms}; }`);
    const [{ external_id }] = await sent(1);
    const [first, again] = gate.attempts;
    assert.ok(again.at - first.at > 900, `${again.at - first.at} ms`);
    assert.equal(first.event.timestamp, undefined);
    const recorded = (await server.events()).find((recorded) => recorded.external_id === external_id);
    const late_ms = Date.parse(recorded.timestamp) - first.at;
    assert.ok(Math.abs(late_ms) < 400, `${late_ms} ms`);
  });
}

test("a time that the page gives stays", async () => {
  const page = await open("/", FAST);
  await sent(1);
  gate.clear();
  gate.fault = () => (gate.attempts.length <= 1 ? 503 : undefined);
  const timestamp = Date.now() - 3_600_000;
  await page.evaluate((timestamp) => headcount("then", { a: 1 }, { timestamp }), timestamp);
  const [{ external_id }] = await sent(1);
  const recorded = (await server.events()).find((recorded) => recorded.external_id === external_id);
  assert.ok(Math.abs(Date.parse(recorded.timestamp) - timestamp) < 100, recorded.timestamp);
});

test("what a page changes after a call is not sent by a retry", async () => {
  gate.fault = () => (gate.attempts.length <= 1 ? 503 : undefined);
  const page = await open("/", FAST);
  await sent(1);
  gate.clear();
  gate.fault = () => (gate.attempts.length <= 1 ? 503 : undefined);
  await page.evaluate(() => {
    const metadata = { step: 1 };
    headcount("step", metadata);
    metadata.step = 2;
  });
  assert.deepEqual((await sent(1))[0].metadata, { step: 1 });
});

test("what is refused is not sent again, and nothing for ever", async () => {
  gate.fault = () => 400;
  let page = await open("/", FAST);
  await pause(1_000);
  assert.equal(gate.attempts.length, 1);
  await context.close();
  gate.clear();
  gate.fault = () => 503;
  await open("/", FAST);
  await until(() => gate.attempts.length === 4, "three retries");
  await pause(1_000);
  assert.equal(gate.attempts.length, 4);
});

test("at most 20 events are held", async () => {
  // No retry starts before every first attempt has its answer: a slow browser could send one earlier.
  const page = await open(
    "/",
    `{
      const held = [];
      const ask = fetch;
      window.answered = 0;
      window.setTimeout = (run, _, ...of) => void held.push(() => run(...of));
      window.fetch = (...of) => ask(...of).finally(() => (answered += 1));
      window.retry = () => held.splice(0).forEach((run) => run());
    }`,
  );
  await sent(1);
  gate.clear();
  gate.fault = () => (gate.attempts.length <= 30 ? 503 : undefined);
  await page.evaluate(() => {
    answered = 0;
    for (let number = 0; number < 30; number += 1) headcount("event", { number });
  });
  await page.waitForFunction(() => answered === 30);
  await page.evaluate(() => retry());
  const numbers = (await sent(20)).map(({ metadata }) => metadata.number);
  assert.deepEqual(numbers.sort((a, b) => a - b), [...Array(20).keys()]);
  assert.equal(gate.attempts.length, 50);
});

for (const [kind, script] of [
  ["by a beacon", "addEventListener('pagehide', () => (window.fetch = () => Promise.reject()));"],
  ["by a request where beacons are blocked", "navigator.sendBeacon = () => false;"],
  ["by a request where there are no beacons", "navigator.sendBeacon = undefined;"],
]) {
  test(`what is not acknowledged when a page is left is sent again ${kind}`, async () => {
    const page = await open("/", script);
    await sent(1);
    gate.clear();
    gate.fault = () => (gate.attempts.length <= 1 ? 503 : undefined);
    await page.evaluate(() => {
      addEventListener("pagehide", () => headcount("left"));
      headcount("event");
    });
    await until(() => gate.attempts.length === 1, "the first attempt");
    await page.goto(site.other);
    const events = await sent(2);
    assert.deepEqual(events.map(({ name }) => name).sort(), ["event", "left"]);
  });
}

test("ids are unique where there is no randomUUID", async () => {
  const page = await open("/");
  assert.deepEqual(await page.evaluate(() => [isSecureContext, typeof crypto.randomUUID]), [false, "undefined"]);
  await page.evaluate(() => [...Array(200).keys()].forEach(() => headcount("event")));
  const events = await sent(201);
  assert.equal(new Set(events.map(({ external_id }) => external_id)).size, 201);
});

test("nothing is stored", async () => {
  const page = await open("/");
  await page.evaluate(() => headcount("identify", "ada"));
  assert.ok((await sent(2)).every(({ anonymous_id }) => anonymous_id === undefined));
  assert.deepEqual(await stored(page), ["", [], []]);
  assert.deepEqual(await context.cookies(), []);
  assert.deepEqual(await page.evaluate(async () => [await indexedDB.databases(), "caches" in window && (await caches.keys())]), [[], false]);
});

for (const [kind, place] of [["session", 2], ["device", 1]]) {
  test(`data-ids=${kind} stores one id, until somebody signs out`, async () => {
    site.attributes += ` data-ids="${kind}"`;
    const page = await open("/");
    await page.goto(site.origin + "/second");
    const [first, second] = await sent(2);
    assert.ok(first.anonymous_id && first.anonymous_id === second.anonymous_id);
    const expected = ["", [], []];
    expected[place] = ["headcount_id"];
    assert.deepEqual(await stored(page), expected);
    const tab = await context.newPage();
    await tab.goto(site.origin + "/tab");
    assert.equal((await sent(3))[2].anonymous_id === first.anonymous_id, kind === "device");
    await page.evaluate(() => {
      headcount("identify", "ada");
      headcount("identify");
      headcount("next");
    });
    const [, , , identify, next] = await sent(5);
    assert.deepEqual([identify.anonymous_id, next.anonymous_id === first.anonymous_id], [first.anonymous_id, false]);
  });

  test(`data-ids=${kind} remembers who signed in as long as the id`, async () => {
    site.attributes += ` data-ids="${kind}"`;
    const page = await open("/");
    await page.evaluate(() => headcount("identify", 42, { email: "ada@example.com" }));
    await page.goto(site.origin + "/second");
    const tab = await context.newPage();
    await tab.goto(site.origin + "/tab");
    const [first, , second, other] = await sent(4);
    assert.deepEqual([first.user_id, second.user_id, second.anonymous_id], [undefined, "42", first.anonymous_id]);
    const isDevice = kind === "device";
    assert.deepEqual([other.user_id, other.anonymous_id === first.anonymous_id], [isDevice ? "42" : undefined, isDevice]);
    const expected = ["", [], []];
    expected[place] = ["headcount_id", "headcount_user"];
    assert.deepEqual(await stored(page), expected);
    await page.evaluate(() => headcount("identify"));
    await page.goto(site.origin + "/third");
    const third = (await sent(5))[4];
    assert.deepEqual([third.user_id, third.anonymous_id === first.anonymous_id], [undefined, false]);
    expected[place] = ["headcount_id"];
    assert.deepEqual(await stored(page), expected);
  });
}

test("a page that knows nobody may say so, and keeps the id", async () => {
  site.attributes += ' data-ids="device"';
  site.head = STUB + '<script>headcount("identify", undefined)</script>';
  const page = await open("/");
  await page.reload();
  await page.evaluate(() => {
    headcount("identify");
    headcount("forgotten");
  });
  const [first, second, forgotten] = await sent(3);
  assert.equal(first.anonymous_id, second.anonymous_id);
  assert.notEqual(forgotten.anonymous_id, first.anonymous_id);
});

test("without data-ids, the next page knows nobody", async () => {
  const page = await open("/");
  await page.evaluate(() => headcount("identify", "ada"));
  await page.goto(site.origin + "/second");
  assert.deepEqual((await sent(3)).map(({ user_id }) => user_id), [undefined, "ada", undefined]);
});

test("a browser whose storage is full is counted", async () => {
  site.attributes += ' data-ids="device"';
  const page = await open("/", "for (let size = 1e6; size >= 1; size /= 2) try { for (;;) localStorage[Math.random()] = 'x'.repeat(size); } catch {}");
  await page.evaluate(() => {
    headcount("identify", "ada");
    headcount("after");
  });
  const events = await sent(3);
  assert.deepEqual([names(events), events[2].user_id], [["pageview", "identify", "after"], "ada"]);
  assert.ok(events.every(({ anonymous_id }) => anonymous_id === events[0].anonymous_id));
});

test("a browser that blocks storage is counted", async () => {
  site.attributes += ' data-ids="device"';
  await open("/#headcount-ignore", "for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { get() { throw new DOMException('blocked', 'SecurityError'); } });");
  assert.ok((await sent(1))[0].anonymous_id);
});

test("data-manual leaves pageviews to the page", async () => {
  site.attributes += " data-manual";
  const page = await open("/users/5");
  await page.evaluate(() => {
    history.pushState({}, "", "/users/6");
    headcount("pageview", { a: 1 }, { url: location.origin + "/users/:id" });
  });
  const [event] = await sent(1);
  assert.deepEqual([event.name, event.url, event.metadata], ["pageview", site.origin + "/users/:id", { a: 1 }]);
});

test("a second copy of the script does nothing", async () => {
  site.head = site.tag;
  await open("/");
  await sent(1);
});

test("what a page sends wrongly does not break it", async () => {
  const page = await open("/");
  await page.evaluate(() => {
    const circle = {};
    circle.circle = circle;
    headcount("event", circle);
    headcount("after");
  });
  assert.deepEqual((await sent(2)).map(({ name }) => name), ["pageview", "after"]);
});

test("the script and the events have the names that an operator chose", async () => {
  site.script = "/app.js";
  site.attributes += ' data-api="/app"';
  await open("/");
  await sent(1);
  assert.equal(gate.attempts[0].url, "/app?pk=" + server.key);
});

test("no request had a preflight", () => {
  assert.equal(gate.preflights, 0);
});
