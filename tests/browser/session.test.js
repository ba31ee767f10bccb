// A browser that is signed in: the page's own requests count, and those that pages of other sites make don't, whether the browser tells where they come from
// (127.0.0.1) or not (plain http from another host).

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { launch, pause, visitor } from "./browser.js";
import { Headcount } from "./headcount.js";

let server, other, browser;

before(async () => {
  server = await Headcount.start();
  other = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>other</title>"));
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  browser = await launch();
});

after(async () => {
  await browser?.close();
  other?.close();
  other?.closeAllConnections();
  await server?.stop();
});

/** Sends a request of the page that is open. */
const send = (page, method, path, body) =>
  page.evaluate(
    async ([method, path, body]) => {
      const headers = body ? { "content-type": "application/json" } : {};
      const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      return { status: answer.status, text: await answer.text() };
    },
    [method, path, body],
  );

/** What comes first of a stream: the name of an event, or `error`. */
const listen = (page, url) =>
  page.evaluate(
    (url) =>
      new Promise((resolve) => {
        const stream = new EventSource(url, { withCredentials: true });
        const end = (name) => () => (stream.close(), resolve(name));
        stream.addEventListener("snapshot", end("snapshot"));
        stream.onerror = end("error");
      }),
    url,
  );

/** A page at `base`, signed in. */
async function signedIn(base) {
  const context = await visitor(browser);
  const page = await context.newPage();
  await page.goto(`${base}/docs`);
  assert.equal((await send(page, "GET", "/session")).status, 401);
  assert.equal((await send(page, "POST", "/session", { token: server.initial.api_token })).status, 204);
  return { context, page };
}

const live = () => `/projects/${server.initial.project_id}/live`;
const projects = async () => {
  const answer = await fetch(`${server.url}/projects`, { headers: { authorization: `Bearer ${server.initial.api_token}` } });
  return (await answer.json()).projects.length;
};

const bases = () => [server.url, `http://stats.test:${server.port}`];

test("the page's own requests count", async () => {
  for (const base of bases()) {
    const { context, page } = await signedIn(base);
    const shown = await send(page, "GET", "/session");
    assert.equal(shown.status, 200, base);
    assert.equal(JSON.parse(shown.text).role, "owner");
    assert.equal((await send(page, "POST", `/projects/${server.initial.project_id}/analytics/count-unique-users-per-day`, {})).status, 200, base);
    assert.equal(await listen(page, live()), "snapshot", base);
    assert.equal(await page.evaluate(() => document.cookie), "", "no script reads the cookie");
    const [cookie] = await context.cookies(base);
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path], ["headcount", true, "Strict", "/"]);
    assert.equal((await send(page, "DELETE", "/session")).status, 204);
    assert.deepEqual([(await send(page, "GET", "/session")).status, (await context.cookies(base)).length], [401, 0], base);
    await context.close();
  }
});

/** Has the page that is open do what pages of other sites can: returns once all of it is answered. */
async function attack(page, base) {
  await page.evaluate(
    async ([base, live]) => {
      const body = '{"name":"forged"}';
      const tries = [];
      for (const credentials of ["include", "same-origin"]) {
        tries.push(fetch(`${base}/projects`, { method: "POST", mode: "no-cors", credentials, body }));
        tries.push(fetch(`${base}/projects`, { method: "POST", mode: "no-cors", credentials, body, referrerPolicy: "no-referrer" }));
        tries.push(fetch(`${base}/session`, { mode: "no-cors", credentials, referrerPolicy: "unsafe-url" }));
        tries.push(fetch(`${base}/session`, { mode: "no-cors", credentials, referrerPolicy: "no-referrer" }));
        tries.push(fetch(`${base}${live}`, { mode: "no-cors", credentials }));
        tries.push(fetch(`${base}/projects`, { method: "POST", credentials, headers: { "content-type": "application/json" }, body }));
      }
      const picture = new Image();
      tries.push(new Promise((resolve) => (picture.onerror = resolve)));
      picture.src = `${base}/session`;
      await Promise.allSettled(tries);
    },
    [base, live()],
  );
  assert.equal(await listen(page, base + live()), "error");
}

/** Has it post a form, as a user's click on anything could. */
async function post(page, base) {
  const answered = page.waitForResponse((answer) => answer.url().startsWith(base));
  await page.evaluate((base) => {
    const form = Object.assign(document.createElement("form"), { method: "POST", action: `${base}/projects`, enctype: "text/plain" });
    const field = Object.assign(document.createElement("input"), { name: '{"name":"forged","x":"', value: '"}' });
    form.append(field);
    document.body.append(form);
    form.submit();
  }, base);
  await answered;
}

test("the requests of other sites don't count", async () => {
  const { port } = other.address();
  for (const base of bases()) {
    const { context, page } = await signedIn(base);
    // The second has the same host: browsers send the cookie there, as it knows no ports.
    for (const site of [`http://evil.test:${port}`, `${new URL(base).protocol}//${new URL(base).hostname}:${port}`]) {
      const answers = [];
      const stranger = await context.newPage();
      stranger.on("response", (answer) => answer.url().startsWith(base) && answers.push(answer.status()));
      await stranger.goto(site);
      await attack(stranger, base);
      await post(stranger, base);
      await pause(50);
      await stranger.close();
      const what = `${site} to ${base}: ${answers}`;
      assert.ok(answers.length >= 10, what);
      // 405 is the answer to a preflight.
      assert.ok(answers.every((status) => status === 401 || status === 405), what);
    }
    assert.equal(await projects(), 1, "nothing was made");
    assert.equal((await send(page, "GET", "/session")).status, 200, "it is still signed in");
    await context.close();
  }
});
