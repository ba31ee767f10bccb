// `headcount demo`: its link shows figures at once, also far from the organization's timezone, and they are those that the server answers.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { launch } from "./browser.js";
import { addDays, brief, briefMoney, duration, share, today, whole } from "./figures.js";
import { demo } from "./headcount.js";

const PATIENCE_MS = 60_000;
const AT_MOST_MS = 300_000;
const DIMENSIONS = [
  ["Acquisition", "source", "unique_users"],
  ["Content", "path", "pageviews"],
];

let browser, started, page, project;

before(async () => {
  const [running, shown] = await Promise.all([demo(), launch()]);
  [started, browser] = [running.started, shown];
  page = await (await browser.newContext({ timezoneId: "Pacific/Auckland", locale: "en-US", reducedMotion: "reduce", viewport: { width: 1280, height: 2_400 } })).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(running.link);
  project = await page.waitForURL("**/ui/*/overview**").then(() => page.url().match(/\/ui\/([^/]+)\//)[1]);
});

after(async () => {
  await browser?.close();
  if (started && started.exitCode === null) {
    started.kill("SIGTERM");
    await once(started, "exit");
  }
});

/** Days that are over: events of the demo go on coming in today. */
const past = () => ({ start_date: addDays(today(), -27), end_date: addDays(today(), -1) });

/** Asks as the page does, with its cookie. */
const ask = (path, body) =>
  page.evaluate(
    async ([url, body]) => {
      const asked = body ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {};
      const answer = await fetch(url, asked);
      return answer.ok ? answer.json() : Promise.reject(new Error(`${url}: ${answer.status}`));
    },
    [`/projects/${project}${path}`, body],
  );

async function open(name) {
  const { start_date, end_date } = past();
  await page.goto(new URL(`/ui/${project}/${name}?period=custom&from=${start_date}&to=${end_date}`, page.url()).href);
  await page.locator("[data-figure]").first().waitFor();
  await page.waitForFunction(() => !document.querySelector('[aria-label="Loading"], main [aria-busy=true]'));
}

test("the printed link shows figures, and nothing is typed", { timeout: AT_MOST_MS }, async () => {
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.locator("[data-figure]").first().waitFor();
  const figures = await page.locator("[data-figure]").allInnerTexts();
  assert.equal(figures.length, 6);
  assert.ok(figures.every((text) => /[1-9]/.test(text)), figures.join(", "));
});

test("the overview shows what the server answers", { timeout: AT_MOST_MS }, async () => {
  await open("overview");
  const { totals } = await ask("/analytics/report", { ...past(), interval: "day" });
  const { unique_users, sessions, pageviews, bounce_rate, duration_avg_sec, revenue } = totals;
  const expected = [brief(unique_users), brief(sessions), brief(pageviews), share(bounce_rate), duration(duration_avg_sec), briefMoney(revenue)];
  assert.deepEqual(await page.locator("[data-figure]").allInnerTexts(), expected);
  for (const [title, dimension, order_by] of DIMENSIONS) {
    const { rows } = await ask("/analytics/breakdown", { ...past(), dimension, order_by, limit: 9 });
    const list = page.getByRole("region", { name: title, exact: true }).first().locator("ul").last().locator("li");
    const shown = await list.evaluateAll((items) => items.map((item) => item.children[1].innerText.trim()));
    const counted = rows.filter((row) => row[order_by] && row.value !== null).map((row) => whole.format(row[order_by]));
    assert.deepEqual(shown, counted.slice(0, shown.length), title);
    assert.ok(shown.length >= 5, title);
  }
});

test("revenue shows what the server answers", { timeout: AT_MOST_MS }, async () => {
  await open("revenue");
  const metrics = await ask(`/revenue/metrics?${new URLSearchParams(past())}`);
  const shown = await page.locator("[data-figure]").allInnerTexts();
  assert.deepEqual(shown, [briefMoney(metrics.total_revenue), brief(metrics.orders), briefMoney(metrics.aov), briefMoney(metrics.arpa), briefMoney(metrics.arpu)]);
});
