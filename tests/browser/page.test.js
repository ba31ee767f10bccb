// The page in a browser far from the organization's timezone: what it shows is what the server answers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch, pause } from "./browser.js";
import { addDays, briefMoney, duration, money, share, today, whole } from "./figures.js";
import { Headcount } from "./headcount.js";
import { sample } from "./sample.js";

process.env.TZ = "Pacific/Auckland";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = 15_000;
const PAGES = ["overview", "live", "revenue", "retention", "funnels", "journeys", "companies", "people", "groups", "health", "settings"];
const SETTINGS = ["tracking", "goals", "projects", "tokens", "members", "shares", "webhooks", "channels", "privacy", "organization"];
const COMPANY_DAYS = 90;

let browser, server, state;

before(async () => {
  server = await Headcount.start();
  await server.manage("PATCH", "/organization", { fx_rates: { EUR: 1.08 } });
  const events = sample(Date.now());
  const receipt = await (await server.ask("/batch", { events })).json();
  assert.deepEqual([receipt.recorded, receipt.errors.length], [events.length, 0]);
  browser = await launch();
  const context = await newContext();
  const page = await context.newPage();
  await signIn(page);
  state = await context.storageState();
  await context.close();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function newContext(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, locale: "en-US", timezoneId: "Pacific/Auckland", reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(() => {
    window.violations = [];
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => window.violations.push(`${violatedDirective} ${blockedURI}`));
  });
  return context;
}

async function signIn(page) {
  await page.goto(server.url);
  await page.getByLabel("Sign-in code or API token").fill(server.initial.api_token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
}

/** Opens a page of the project, signed in, and waits for its figures. */
async function open(path, options = {}) {
  const context = await newContext({ storageState: state, viewport: { width: 1280, height: 2_400 }, ...options });
  const page = await context.newPage();
  page.failures = [];
  page.on("pageerror", (error) => page.failures.push(String(error)));
  page.asked = [];
  page.on("request", (request) => page.asked.push(request.url()));
  await page.goto(`${server.url}/ui/${server.initial.project_id}/${path}`);
  await settled(page);
  return page;
}

async function settled(page) {
  await page.locator("main h1").waitFor();
  await pause(100);
  await page.waitForFunction(() => !document.querySelector('[aria-label="Loading"]'));
}

async function close(page) {
  assert.deepEqual(page.failures, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.deepEqual(page.asked.filter((url) => !url.startsWith(server.url) && !url.startsWith("data:") && !url.startsWith("blob:")), []);
  await page.context().close();
}

const last28 = () => ({ start_date: addDays(today(), -27), end_date: today() });

const figure = (page, id) => page.locator(`[data-figure="${id}"]`).innerText();
const card = (page, title) => page.getByRole("region", { name: title, exact: true }).first();
const cells = (table) => table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));

test("a token signs in, a wrong one is refused, and signing out ends it", async () => {
  const context = await newContext();
  const page = await context.newPage();
  await page.goto(server.url);
  await page.getByLabel("Sign-in code or API token").fill("sk_00000000000000000000000000000000");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await signIn(page);
  assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length + document.cookie.length), 0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Sign-in code or API token").waitFor();
  await page.reload();
  await page.getByLabel("Sign-in code or API token").waitFor();
  await context.close();
});

test("the first view is small, and of this server alone", async () => {
  const page = await open("overview", { viewport: { width: 1280, height: 720 } });
  await page.locator("[aria-roledescription=chart]").waitFor();
  assert.ok(page.asked.length <= 9, page.asked.join("\n"));
  await close(page);
});

test("the overview shows what report and breakdown answer", async () => {
  const report = await (await server.ask("/analytics/report", { ...last28(), interval: "day", compare: "previous_period" })).json();
  const page = await open("overview");
  const { unique_users, sessions, pageviews, bounce_rate, duration_avg_sec, revenue } = report.totals;
  const expected = [whole.format(unique_users), whole.format(sessions), whole.format(pageviews), share(bounce_rate), duration(duration_avg_sec), briefMoney(revenue)];
  const shown = await page.locator("[data-figure]").allInnerTexts();
  assert.deepEqual(shown, expected);
  await page.getByRole("button", { name: "Show the table" }).click();
  const rows = await cells(page.getByRole("group", { name: "Figures" }).last());
  assert.equal(rows.length, 28);
  const days = report.series.toReversed();
  const columns = (day) => [whole.format(day.unique_users), whole.format(day.sessions), whole.format(day.pageviews), whole.format(day.events), share(day.bounce_rate), duration(day.duration_avg_sec), money(day.revenue)];
  rows.forEach((row, index) => assert.deepEqual(row.slice(1), columns(days[index]), days[index].bucket));
  assert.ok(rows[0][0].includes("in progress"));
  await close(page);
});

const BREAKDOWNS = [
  ["Acquisition", "Sources", "source", "unique_users"],
  ["Acquisition", "Channels", "acquisition_channel", "unique_users"],
  ["Acquisition", "Mediums", "medium", "unique_users"],
  ["Acquisition", "Campaigns", "campaign", "unique_users"],
  ["Content", "Pages", "path", "pageviews"],
  ["Content", "Entry pages", "entry_url", "sessions"],
  ["Content", "Exit pages", "exit_url", "sessions"],
  ["Devices", "Browsers", "browser", "unique_users"],
  ["Devices", "OS", "os", "unique_users"],
];

test("the cards show what breakdown answers", async () => {
  const page = await open("overview");
  for (const [title, tab, dimension, order_by] of BREAKDOWNS) {
    const { rows } = await (await server.ask("/analytics/breakdown", { ...last28(), dimension, order_by, limit: 9 })).json();
    await card(page, title).getByRole("tab", { name: tab, exact: true }).click();
    await settled(page);
    const shown = await card(page, title).locator("ul").last().locator("li").evaluateAll((items) => items.map((item) => [item.children[0].innerText.trim(), item.children[1].innerText.trim()]));
    const name = (value) => String(value).replace(/^https?:\/\//, "");
    const expected = rows.filter((row) => row[order_by] && (row.value !== null || title === "Devices"));
    assert.deepEqual(shown, expected.map((row) => [row.value === null ? "Unknown" : name(row.value), whole.format(row[order_by])]), `${title}: ${tab}`);
  }
  await close(page);
});

test("a filter holds for all figures, and lives in the address", async () => {
  const page = await open("overview");
  await card(page, "Acquisition").getByRole("button", { name: "news", exact: true }).click();
  await page.getByLabel("Filters").waitFor();
  await settled(page);
  const filters = [{ field: "source", operator: "is", value: "news" }];
  const { totals } = await (await server.ask("/analytics/report", { ...last28(), interval: "day", filters })).json();
  await page.waitForFunction((users) => document.querySelector("[data-figure=unique_users]").textContent === users, whole.format(totals.unique_users));
  assert.equal(await figure(page, "sessions"), whole.format(totals.sessions));
  await page.reload();
  await settled(page);
  assert.equal(await figure(page, "unique_users"), whole.format(totals.unique_users));
  await page.goBack();
  await settled(page);
  assert.equal(await page.getByLabel("Filters").count(), 0);
  await close(page);
});

test("a filter on events without a value follows the condition", async () => {
  const page = await open("overview");
  for (const [condition, operator] of [["is_not", "is_set"], ["is", "is_not_set"]]) {
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Add a filter" });
    await dialog.getByLabel("Field").selectOption("path");
    await dialog.getByLabel("Condition").selectOption(condition);
    await dialog.getByRole("button", { name: "(none)" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.equal(new URL(page.url()).searchParams.getAll("f").at(-1), `path~${operator}~`);
  }
  await close(page);
});

test("revenue shows what its four questions answer, and what has no rate", async () => {
  const query = new URLSearchParams(last28());
  const metrics = await (await server.ask(`/revenue/metrics?${query}`)).json();
  const page = await open("revenue");
  assert.equal(await figure(page, "total_revenue"), briefMoney(metrics.total_revenue));
  assert.equal(await figure(page, "orders"), whole.format(metrics.orders));
  for (const id of ["aov", "arpa", "arpu"]) assert.equal(await figure(page, id), briefMoney(metrics[id]));
  const banner = await page.getByRole("note").innerText();
  assert.equal(banner.includes(money(metrics.unconverted.JPY.revenue, "JPY")), true, banner);
  for (const [model, first] of [["first_touch", "First touch"], ["last_touch", "Last touch"]]) {
    for (const [level, name] of [["account", "account"], ["identity", "person"]]) {
      const { rows } = await (await server.ask(`/revenue/by-attribution?${query}&model=${model}&level=${level}&limit=100`)).json();
      const shown = await card(page, `${first}, by ${name}`).locator("li").evaluateAll((items) => items.map((item) => [item.children[0].textContent, item.children[1].textContent]));
      assert.deepEqual(shown, rows.slice(0, 8).map(({ dimension, revenue }) => [dimension, briefMoney(revenue)]));
    }
  }
  const { cohorts } = await (await server.ask("/revenue/ltv-cohorts")).json();
  const rows = await cells(page.getByRole("group", { name: "Lifetime value" }).last());
  assert.deepEqual(rows.map((row) => row.slice(1)), cohorts.map(({ entities, orders, revenue, ltv }) => [whole.format(entities), whole.format(orders), money(revenue), money(ltv)]));
  await page.getByRole("button", { name: "Show the table" }).click();
  const { series } = await (await server.ask(`/revenue/timeseries?${query}`)).json();
  const days = await cells(page.getByRole("group", { name: "Revenue by day" }));
  assert.deepEqual(days.map(([, revenue, orders]) => [revenue, orders]), series.toReversed().map(({ revenue, orders }) => [money(revenue), String(orders)]));
  await close(page);
});

/** Opens what explains a figure by the keyboard, and returns its dialog. */
async function why(page, name) {
  await page.getByRole("button", { name: `${name}: why this number?`, exact: true }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: `${name}: why this number?` });
  await dialog.locator("[data-result]").waitFor();
  return dialog;
}

test("each figure says why it is what it is, event by event", async () => {
  const explain = async (figure, more = {}) => (await server.ask("/explain", { figure, ...last28(), limit: 500, ...more })).json();
  const page = await open("overview");
  const sessions = await explain("sessions");
  const dialog = await why(page, "Sessions");
  assert.equal(await dialog.locator("[data-result]").innerText(), whole.format(sessions.result));
  const ids = () => dialog.locator("tbody code[title]").evaluateAll((ids) => ids.map(({ title }) => title));
  assert.ok(sessions.rows.length > 50 && sessions.next === null, `${sessions.rows.length} sessions are some pages`);
  assert.deepEqual(await ids(), sessions.rows.slice(0, 50).map(({ event_id }) => event_id));
  for (let shown = 50; shown < sessions.rows.length; shown += 50) {
    await dialog.getByRole("button", { name: "More" }).click();
    await dialog.locator("tbody tr").nth(shown).waitFor();
  }
  assert.deepEqual(await ids(), sessions.rows.map(({ event_id }) => event_id));
  await dialog.getByRole("tab", { name: "Counted", exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  assert.deepEqual(await ids(), sessions.not_counted.map(({ event_id }) => event_id));
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Sessions: why this number?");
  for (const name of ["Visitors", "Bounce rate", "Session duration", "Revenue"]) {
    const opened = await why(page, name);
    await page.keyboard.press("Escape");
    // Nothing behind it can be focused until it is gone.
    await opened.waitFor({ state: "detached" });
  }
  await page.goto(`${server.url}/ui/${server.initial.project_id}/revenue`);
  await settled(page);
  const revenue = await explain("revenue");
  const shown = await why(page, "Revenue");
  assert.equal(await shown.locator("[data-result]").innerText(), money(revenue.result));
  const first = revenue.rows[0];
  const row = (await cells(shown.locator("table")))[0];
  assert.deepEqual([row[0], row[2], row.at(-1)], [first.name, first.why, money(first.contributes)]);
  await page.keyboard.press("Escape");
  const block = page.getByRole("region", { name: "First touch, by account" });
  const value = await block.locator("li span").first().innerText();
  await block.getByRole("button", { name: /: why this number\?$/ }).first().click();
  const touch = page.getByRole("dialog", { name: `${value}, first touch, by account: why this number?` });
  const attributed = await explain("attribution", { value });
  assert.equal(await touch.locator("[data-result]").innerText(), money(attributed.result));
  await close(page);
});

for (const colorScheme of ["light", "dark"]) {
  test(`what explains a figure has no barrier and fits, ${colorScheme}`, async () => {
    const page = await open("revenue", { colorScheme, viewport: { width: 390, height: 844 } });
    await why(page, "Revenue");
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await close(page);
  });
}

test("companies lead to their people, and those to what they did", async () => {
  const { companies } = await server.get(`/companies/top?range_days=${COMPANY_DAYS}&limit=50`);
  const page = await open("overview");
  // The currency comes with another answer. Until then, no amount is shown.
  await page.route("**/companies/*/metrics?*", async (route) => {
    await pause(500);
    await route.continue();
  });
  await page.goto(`${server.url}/ui/${server.initial.project_id}/companies?range_days=${COMPANY_DAYS}`);
  await settled(page);
  const rows = await cells(page.getByRole("group", { name: "Companies" }));
  assert.deepEqual(rows.map((row) => row.slice(0, 4)), companies.map(({ domain, events, users, revenue }) => [domain, whole.format(events), whole.format(users), money(revenue)]));
  await page.getByRole("link", { name: "acme.com" }).click();
  await page.getByRole("heading", { name: "acme.com" }).waitFor();
  const acme = await server.get(`/companies/lookup?domain=acme.com&range_days=${COMPANY_DAYS}`);
  for (const id of ["users", "sessions", "events", "orders"]) assert.equal(await figure(page, id), whole.format(acme[id]));
  const { users } = await server.get(`/companies/${acme.company_id}/top-users?range_days=${COMPANY_DAYS}&limit=50`);
  await page.getByRole("group", { name: "People" }).last().waitFor();
  assert.deepEqual((await cells(page.getByRole("group", { name: "People" }).last())).map((row) => row.slice(0, 2)), users.map(({ resolved_identifier, events }) => [resolved_identifier, whole.format(events)]));
  await page.getByRole("link", { name: users[0].resolved_identifier }).click();
  await page.getByRole("heading", { name: users[0].user_id }).waitFor();
  const query = new URLSearchParams({ user_id: users[0].user_id, ...last28() });
  const person = await server.get(`/identities/profile?${query}`);
  for (const id of ["events", "pageviews", "sessions", "active_days"]) assert.equal(await figure(page, id), whole.format(person[id]));
  assert.equal(await figure(page, "revenue"), money(person.revenue));
  const heads = (title) => page.getByRole("group", { name: title }).locator("th").allInnerTexts();
  assert.deepEqual([await heads("Pages"), await heads("Referrers")].filter((names) => names.length), [["Pages", "Pageviews"]]);
  await close(page);
});

test("people and retention show what the server answers", async () => {
  const { identities } = await server.get("/identities/top?limit=50");
  const page = await open("people");
  const rows = await cells(page.getByRole("group", { name: "People" }));
  const named = ({ resolved_identifier, user_id }) => (user_id && user_id !== resolved_identifier ? `${resolved_identifier}\n${user_id}` : resolved_identifier);
  assert.deepEqual(rows.map((row) => row.slice(0, 3)), identities.map((row) => [named(row), whole.format(row.events), money(row.revenue)]));
  await close(page);
  const { cohorts } = await (await server.ask("/analytics/retention?interval=week&cohorts=12")).json();
  const grid = await open("retention");
  const shown = await grid.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].slice(1).map((cell) => cell.title || cell.innerText)));
  const seen = cohorts.slice(0, cohorts.findLastIndex(({ users }) => users) + 1);
  assert.deepEqual(shown, seen.map(({ users, returned }) => [whole.format(users), ...returned.map((back) => (users ? `${back} of ${users}` : ""))]));
  await close(grid);
});

test("an event is seen in every tab at once, by one stream", async () => {
  const page = await open("live");
  const other = await page.context().newPage();
  const streams = [];
  page.context().on("request", (request) => request.url().endsWith("/live") && request.resourceType() === "fetch" && streams.push(request));
  await other.goto(page.url());
  for (const tab of [page, other]) await tab.locator("[data-figure=users_5m]").waitFor();
  const events = Number((await figure(page, "events")).replaceAll(",", ""));
  await (await server.ask("/track", { name: "ping", user_id: "user-4", notify: true, message: "=hello <b>" })).json();
  for (const tab of [page, other]) {
    await tab.waitForFunction((events) => document.querySelector("[data-figure=events]").textContent === events, whole.format(events + 1));
    await tab.getByText("=hello <b>").waitFor();
  }
  assert.equal(streams.length, 0);
  await close(page);
});

test("files are safe for spreadsheets", async () => {
  await (await server.ask("/track", { name: '=cmd|"calc"', user_id: "user-4" })).json();
  const page = await open("overview");
  const saved = page.waitForEvent("download");
  await card(page, "Events").getByRole("button", { name: "Download Events as CSV" }).click();
  const text = readFileSync(await (await saved).path(), "utf8");
  assert.ok(text.startsWith("\ufeffEvents,"), text);
  assert.ok(text.includes(`"'=cmd|""calc"""`), text);
  await close(page);
});

test("keys choose the period, search, compare and close", async () => {
  const page = await open("overview");
  await page.keyboard.press("w");
  await page.waitForURL("**period=7d**");
  await page.keyboard.press("x");
  await page.waitForURL("**compare=none**");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("/");
  await page.getByRole("dialog", { name: "Add a filter" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  // The next key may come before the browser has reported that the dialog closed.
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.evaluate(() => {
    document.querySelector("dialog").close();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
  });
  await page.getByRole("dialog", { name: "Add a filter" }).waitFor();
  // And before the browser has taken the focus out of the dialog.
  await page.evaluate(() => {
    const dialog = document.querySelector("dialog");
    const field = dialog.querySelector("input");
    dialog.close();
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
  });
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.locator("[aria-roledescription=chart]").focus();
  // Until the answer without a comparison is there, the chart shows the one before.
  let spoken;
  for (const since = Date.now(); !/in progress: \d+$/.test(spoken); ) {
    assert.ok(Date.now() - since < PATIENCE_MS, spoken);
    await page.keyboard.press("Home");
    await page.keyboard.press("End");
    spoken = await page.locator("[aria-live=polite]").first().innerText();
  }
  await page.keyboard.press("Home");
  assert.notEqual(await page.locator("[aria-live=polite]").first().innerText(), spoken);
  // Everything is reached by Tab, from the first link to the last card.
  const reached = new Set();
  await page.evaluate(() => document.activeElement.blur());
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText));
  }
  for (const name of ["Skip to main content", "Companies", "Download Events as CSV", "Show the table"]) assert.ok([...reached].some((one) => one?.includes(name)), `${name}: ${[...reached].join("; ")}`);
  await close(page);
});

for (const colorScheme of ["light", "dark"]) {
  test(`no page has a barrier that axe finds, ${colorScheme}`, async () => {
    const page = await open("overview", { colorScheme });
    const paths = [...PAGES, ...SETTINGS.map((section) => `settings/${section}`), `companies/${(await server.get("/companies/top")).companies[0].company_id}`, "people/user-1"];
    for (const path of paths) {
      await page.goto(`${server.url}/ui/${server.initial.project_id}/${path}`);
      await settled(page);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(" | ")}`);
      assert.deepEqual(found, [], path);
    }
    await close(page);
  });
}

test("a narrow page has no sideways scroll", async () => {
  const page = await open("overview", { viewport: { width: 390, height: 844 } });
  for (const path of PAGES) {
    await page.goto(`${server.url}/ui/${server.initial.project_id}/${path}`);
    await settled(page);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, path);
  }
  await close(page);
});

test("what a token may not see names the scope, and an outage keeps the figures", async () => {
  const { token } = await server.manage("POST", "/api-tokens", { name: "reader", role: "member", scopes: ["analytics:read"] });
  const context = await newContext();
  const page = await context.newPage();
  await page.goto(server.url);
  await page.getByLabel("Sign-in code or API token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await settled(page);
  assert.equal(await page.locator("[data-figure=revenue]").count(), 0);
  await page.goto(`${server.url}/ui/${server.initial.project_id}/companies`);
  await page.getByText("You don't have access").first().waitFor();
  assert.match(await page.locator("main").innerText(), /companies:read|owner|admin/);
  await page.goto(`${server.url}/ui/${server.initial.project_id}/overview`);
  await settled(page);
  const users = await figure(page, "unique_users");
  await page.route("**/analytics/report", (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"error":{"code":"overloaded","message":"later"}}' }));
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.getByText("Showing earlier figures").first().waitFor();
  assert.equal(await figure(page, "unique_users"), users);
  await context.close();
});

test("a one-time code signs in once, and is in no address after that", async () => {
  const { code } = await server.manage("POST", "/session/codes", {});
  const context = await newContext();
  const page = await context.newPage();
  await page.goto(`${server.url}/#code=${code}`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  assert.equal(new URL(page.url()).hash, "");
  const other = await (await newContext()).newPage();
  await other.goto(`${server.url}/#code=${code}`);
  await other.getByRole("alert").waitFor();
  for (const one of [page, other]) await one.context().close();
});

/** What the server knows of whoever asks from a page, or from a frame in it. */
const whoever = (page) => page.evaluate(() => fetch("/session").then((answer) => (answer.ok ? answer.json() : answer.status)));

test("an address of another organization asks before it replaces the session", async () => {
  const other = await server.manage("POST", "/organizations", { name: "Evil \u202e Inc" }, server.initial.root_token);
  const { code } = await server.manage("POST", "/session/codes", {}, other.api_token);
  const context = await newContext();
  const page = await context.newPage();
  await signIn(page);
  const own = await whoever(page);
  const question = page.getByRole("heading", { name: "Sign in as someone else?" });
  for (const answer of ["Stay signed in", "Sign out and switch"]) {
    await page.goto(`${server.url}/#code=${code}`);
    await question.waitFor();
    const text = await page.getByRole("main").innerText();
    assert.ok(text.includes('"default"') && text.includes('"Evil \\u{202e} Inc" as owner'), text);
    assert.deepEqual(await whoever(page), own);
    await page.getByRole("button", { name: answer }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const now = await whoever(page);
    assert.equal(now.projects[0].project_id, answer === "Stay signed in" ? own.projects[0].project_id : other.project_id);
  }
  // An address of the same token asks nothing.
  const { code: again } = await server.manage("POST", "/session/codes", {}, other.api_token);
  await page.goto(`${server.url}/#code=${again}`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await context.close();
});

test("a share leaves whoever is signed in signed in, and shows them nothing more", async () => {
  const { url } = await server.manage("POST", `/projects/${server.initial.project_id}/shares`, { name: "press" });
  const context = await newContext({ storageState: state });
  const page = await context.newPage();
  const before = await context.cookies();
  const link = url.replace(/^https?:\/\/[^/]+/, server.url);
  await page.goto(link);
  const names = async () => (await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts()).map((name) => name.trim());
  for (const again of [() => {}, () => page.getByRole("link", { name: "Live", exact: true }).click(), () => page.reload()]) {
    await again();
    await page.getByRole("heading", { level: 1 }).waitFor();
    assert.deepEqual(await names(), ["Overview", "Live", "Retention", "Funnels", "Journeys"]);
    assert.ok(page.url().startsWith(link.split("#")[0]), page.url());
  }
  await page.locator("[data-figure=users_5m]").waitFor();
  assert.equal(await page.getByRole("button", { name: "Sign out" }).count(), 0);
  // Not even a request with the cookie counts from there.
  assert.equal(await whoever(page), 401);
  assert.deepEqual(await context.cookies(), before);
  await page.goto(server.url);
  await page.getByRole("link", { name: "Settings" }).waitFor();
  await context.close();
});

test("a frame shows nobody who is signed in", async () => {
  let framed;
  const site = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(`<iframe src="${framed}" width="1000" height="800"></iframe>`));
  await new Promise((listening) => site.listen(0, "127.0.0.1", listening));
  // Another port is another origin of the same site: browsers send the cookie there.
  const { port } = site.address();
  const { url } = await server.manage("POST", `/projects/${server.initial.project_id}/shares`, { name: "framed", embed_origins: [`http://127.0.0.1:${port}`] });
  const context = await newContext({ storageState: state });
  const page = await context.newPage();
  for (const path of ["", "/settings/tokens", `/../${server.initial.project_id}/settings/tokens`]) {
    framed = url.replace(/^https?:\/\/[^/]+/, server.url).split("#")[0] + path;
    await page.goto(`http://127.0.0.1:${port}/`);
    if (path.startsWith("/..")) {
      // The browser shows an error of its own.
      assert.match(page.frames()[1].url(), /^chrome-error:/, path);
    } else {
      await page.frameLocator("iframe").getByText("This share isn't available").waitFor();
      assert.equal(await whoever(page.frames()[1]), 401, path);
    }
  }
  await context.close();
  site.close();
});

test("a share shows its project, without people and money", async () => {
  const { url } = await server.manage("POST", `/projects/${server.initial.project_id}/shares`, { name: "press" });
  const context = await newContext({ viewport: { width: 1280, height: 2_400 } });
  const page = await context.newPage();
  const answers = [];
  page.on("response", (response) => answers.push([response.status(), new URL(response.url()).pathname]));
  await page.goto(url.replace(/^https?:\/\/[^/]+/, server.url));
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await settled(page);
  const links = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts();
  assert.deepEqual(links.map((link) => link.trim()), ["Overview", "Live", "Retention", "Funnels", "Journeys"]);
  assert.equal(await page.locator("[data-figure=revenue]").count(), 0);
  // The page asks for nothing that a share may not see.
  assert.deepEqual(answers.filter(([status]) => status >= 400), []);
  await context.close();
});

test("a share is shown in frames of the origins that it names, and in no others", async () => {
  let share;
  const site = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(`<iframe src="${share}" width="1000" height="800"></iframe>`));
  await new Promise((listening) => site.listen(0, "127.0.0.1", listening));
  const { port } = site.address();
  const { url } = await server.manage("POST", `/projects/${server.initial.project_id}/shares`, { name: "framed", embed_origins: [`http://127.0.0.1:${port}`] });
  share = url.replace(/^https?:\/\/[^/]+/, server.url);
  const context = await newContext();
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${port}/`);
  const visitors = page.frameLocator("iframe").locator("[data-figure=unique_users]");
  await visitors.waitFor();
  assert.match(await visitors.innerText(), /\d/);
  // Under another name the same site is another origin.
  const refused = page.waitForEvent("console", { predicate: (message) => message.text().includes("frame-ancestors") });
  await page.goto(`http://localhost:${port}/`);
  await refused;
  assert.equal(await visitors.count(), 0);
  await context.close();
  site.close();
});

test("groups and data health show what the server answers", async () => {
  const { groups } = await server.get("/groups/top?group_type=team&limit=50");
  const page = await open("groups");
  const rows = await cells(page.getByRole("group", { name: "Groups" }));
  assert.deepEqual(rows.map((row) => row.slice(0, 3)), groups.map(({ group_key, events, users }) => [group_key, whole.format(events), whole.format(users)]));
  await (await server.ask("/batch", { events: [{ name: "twice", external_id: "twice" }, { name: "twice", external_id: "twice" }, { name: "" }] })).json();
  const intake = await (await server.ask("/intake")).json();
  await page.goto(`${server.url}/ui/${server.initial.project_id}/health`);
  await settled(page);
  const dropped = Object.values(intake.dropped).reduce((sum, events) => sum + events, 0);
  assert.deepEqual([intake.duplicates, intake.invalid], [1, 1]);
  for (const [id, events] of Object.entries({ recorded: intake.recorded, duplicates: intake.duplicates, dropped, invalid: intake.invalid })) assert.equal(await figure(page, id), whole.format(events));
  await close(page);
});

test("data health waits for its figures before it says that events are missing", async () => {
  const page = await open("live");
  await page.route("**/intake?*", async (route) => {
    await pause(500);
    await route.continue();
  });
  await page.goto(`${server.url}/ui/${server.initial.project_id}/health`);
  await page.getByRole("button", { name: "Copy snippet" }).waitFor();
  assert.doesNotMatch(await card(page, "Installation").innerText(), /events/i);
  await card(page, "Installation").getByText("Events are arriving").waitFor();
  await close(page);
});

test("a project without events says what to do, and shows the first one at once", async () => {
  const { project_id, public_key } = await server.manage("POST", "/projects", { name: "new one" });
  const page = await open("overview");
  await page.goto(`${server.url}/ui/${project_id}/overview`);
  await page.getByText("Waiting for the first event").waitFor();
  assert.ok((await page.locator("code").first().innerText()).includes(public_key));
  const event = { method: "POST", headers: { "content-type": "application/json", "x-service-pk": public_key }, body: JSON.stringify({ name: "pageview", user_id: "first", url: "https://a.example/" }) };
  assert.equal((await fetch(`${server.url}/track`, event)).status, 202);
  await page.locator("[data-figure=unique_users]").waitFor();
  assert.equal(await figure(page, "unique_users"), "1");
  await close(page);
  await server.manage("DELETE", `/projects/${project_id}`);
});

test("settings list the hosts that are no sources", async () => {
  const path = `/projects/${server.initial.project_id}`;
  const lists = ({ own_domains, ignored_referrers }) => [own_domains, ignored_referrers];
  const page = await open("settings/tracking");
  const save = () => Promise.all([page.waitForResponse((answer) => answer.request().method() === "PATCH"), page.getByRole("button", { name: "Save hosts" }).click()]);
  await page.getByLabel("Own domains").fill("Blog.example docs.example,");
  await page.getByLabel("Ignored referrers").fill("https://pay.example/");
  await save();
  await page.getByRole("alert").filter({ hasText: "must be a host" }).waitFor();
  await page.getByLabel("Ignored referrers").fill("pay.example");
  await save();
  assert.deepEqual(lists(await server.get(path)), [["blog.example", "docs.example"], ["pay.example"]]);
  await page.reload();
  assert.equal(await page.getByLabel("Own domains").inputValue(), "blog.example, docs.example");
  await page.getByLabel("Own domains").fill("");
  await page.getByLabel("Ignored referrers").fill("");
  await save();
  assert.deepEqual(lists(await server.get(path)), [[], []]);
  await close(page);
});

test("settings make tokens that are shown once, and revoke them", async () => {
  const page = await open("settings/tokens");
  await page.getByLabel("Name", { exact: true }).fill("robot");
  await page.getByRole("button", { name: "Create token" }).click();
  const token = (await page.getByRole("status").filter({ hasText: "You won't see it again" }).locator("code").innerText()).trim();
  const ask = () => fetch(`${server.url}/projects/${server.initial.project_id}/analytics/count-unique-users-per-day`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: "{}" });
  assert.equal((await ask()).status, 200);
  await page.reload();
  const row = page.getByRole("row").filter({ hasText: "robot" });
  await row.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
  await row.waitFor({ state: "detached" });
  assert.equal(await page.getByText(token).count(), 0);
  assert.equal((await ask()).status, 401);
  await close(page);
});
