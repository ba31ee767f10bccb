// Goals, segments, conditions on people and annotations on the page: their figures are the API's, and a keyboard makes, changes and deletes them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { launch } from "./browser.js";
import { addDays, money, share, whole } from "./figures.js";
import { Headcount } from "./headcount.js";
import { Reader } from "./reader.js";
import { sample } from "./sample.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const ZONES = ["Pacific/Kiritimati", "Pacific/Pago_Pago"];

let browser, server, reader, page, project;

/** Fills a server with events. */
async function fill(server, timezone) {
  await server.manage("PATCH", "/organization", { timezone, fx_rates: { EUR: 1.08, JPY: 0.007 } });
  const events = sample(Date.now());
  assert.equal((await (await server.ask("/batch", { events })).json()).recorded, events.length);
}

before(async () => {
  server = await Headcount.start();
  project = `/projects/${server.initial.project_id}`;
  await fill(server, "UTC");
  browser = await launch();
  reader = await Reader.signIn(browser, server);
  page = reader.page;
});

beforeEach(async () => {
  await page.goto("about:blank");
  reader.refused = [];
  for (const [kind, id] of Object.entries({ goals: "goal_id", segments: "segment_id", annotations: "annotation_id" })) {
    for (const one of await listed(kind)) await server.manage("DELETE", `${project}/${kind}/${one[id]}`);
  }
});

afterEach(() => assert.deepEqual(reader.refused, []));

after(async () => {
  await browser?.close();
  await server?.stop();
});

const dayIn = (timeZone) => new Intl.DateTimeFormat("en-CA", { timeZone }).format(new Date());
const last28 = (zone = "UTC") => ({ start_date: addDays(dayIn(zone), -27), end_date: dayIn(zone) });
const ask = async (question, body, zone) => (await server.ask(`/analytics/${question}`, { ...last28(zone), ...body })).json();
const make = (kind, body) => server.manage("POST", `${project}/${kind}`, body);
const listed = async (kind) => (await server.get(`${project}/${kind}`))[kind];
const percent = new Intl.NumberFormat("en-US", { style: "percent", maximumFractionDigits: 0, signDisplay: "exceptZero" });
const growth = ({ conversions, previous }) => percent.format(conversions / previous.conversions - 1);
const cells = (locator) => locator.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
const dialog = (name) => page.getByRole("dialog", { name });

/** Focuses a control, and presses Enter. */
async function press(control) {
  await control.focus();
  await page.keyboard.press("Enter");
}

/** Fills a field, and presses Enter. */
async function enter(field, text) {
  await field.fill(text);
  await field.press("Enter");
}

async function hasNoBarrier(shown = page) {
  await shown.evaluate(AXE);
  const { violations } = await shown.evaluate((runOnly) => axe.run({ runOnly }), AXE_TAGS);
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
  assert.ok((await shown.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "no sideways scroll");
}

/** What the tiles show, once they show the API's answer to a choice of events. */
async function showsUsers(choice) {
  const { totals } = await ask("report", { interval: "day", ...choice });
  await page.waitForFunction((users) => document.querySelector("[data-figure=unique_users]")?.textContent === users, whole.format(totals.unique_users));
  await reader.settled();
  assert.equal(await reader.figure("pageviews"), whole.format(totals.pageviews));
  return totals;
}

test("without goals, the card says what a goal is, and leads to one", async () => {
  await reader.open("overview");
  await reader.card("Goals").getByText("A goal is an event or a page").waitFor();
  await press(reader.card("Goals").getByRole("button", { name: "Make a goal" }));
  await dialog("Make a goal").getByLabel("Event name").fill("order");
  await enter(dialog("Make a goal").getByLabel("Name", { exact: true }), "Ordered");
  await reader.card("Goals").getByRole("button", { name: "Ordered" }).waitFor();
  const [{ name, event_name, page: pages }] = await listed("goals");
  assert.deepEqual([name, event_name, pages], ["Ordered", "order", null]);
});

for (const zone of ZONES) {
  test(`the card of goals shows what goals answers, in ${zone}`, async () => {
    const far = await Headcount.start();
    try {
      await fill(far, zone);
      const goals = `/projects/${far.initial.project_id}/goals`;
      await far.manage("POST", goals, { name: "Ordered", event_name: "order" });
      await far.manage("POST", goals, { name: "Prices", page: "/pric*", filters: [{ field: "source", operator: "is", value: "news" }] });
      const other = await Reader.signIn(browser, far);
      for (const compare of ["previous_period", null]) {
        const { goals } = await (await far.ask("/analytics/goals", { ...last28(zone), compare })).json();
        assert.ok(goals.every(({ conversions }) => conversions > 0));
        await other.open(`overview?compare=${compare ?? "none"}`);
        const shown = (goal) => [goal.name, whole.format(goal.conversions), ...(compare ? [growth(goal)] : []), whole.format(goal.converters), share(goal.rate), money(goal.revenue)];
        assert.deepEqual(await cells(other.card("Goals")), goals.map(shown));
      }
      await other.page.context().close();
    } finally {
      await far.stop();
    }
  });
}

test("a click on a goal leaves its converters, in the address too", async () => {
  const { goal_id: goal } = await make("goals", { name: "Ordered", event_name: "order" });
  const people = [{ did: { goal }, at_least: 1, within: "window" }];
  await reader.open("overview");
  const all = Number((await reader.figure("unique_users")).replaceAll(",", ""));
  await press(reader.card("Goals").getByRole("button", { name: "Ordered" }));
  const { unique_users } = await showsUsers({ people });
  assert.ok(unique_users > 0 && unique_users < all);
  await page.getByLabel("Filters").getByText("People who reached Ordered in this period").waitFor();
  await page.reload();
  await showsUsers({ people });
  const { rows } = await ask("breakdown", { dimension: "path", order_by: "pageviews", limit: 9, people });
  const pages = await reader.card("Content").locator("ul").last().locator("li").evaluateAll((items) => items.map((item) => item.children[1].innerText));
  assert.deepEqual(pages, rows.filter(({ value, pageviews }) => value !== null && pageviews).map(({ pageviews }) => whole.format(pageviews)));
  await page.getByRole("link", { name: "Revenue", exact: true }).click();
  await page.getByText("The filters of other pages don't apply").waitFor();
  await page.goBack();
  await press(reader.card("Goals").getByRole("button", { name: "Ordered" }));
  await showsUsers({});
  assert.equal(new URL(page.url()).searchParams.has("p"), false);
});

test("a keyboard makes, changes and deletes goals", async () => {
  await reader.open("settings/goals");
  await press(page.getByRole("button", { name: "Make a goal" }));
  const made = dialog("Make a goal");
  await made.getByLabel("Reached by").selectOption("page");
  await made.getByLabel("Page", { exact: true }).focus();
  await page.waitForFunction(() => [...document.querySelectorAll("dialog datalist option")].some(({ value }) => value === "/pricing"));
  await made.getByLabel("Page", { exact: true }).fill("/pricing");
  await enter(made.getByLabel("Name", { exact: true }), "Prices");
  await made.waitFor({ state: "detached" });
  await page.getByRole("cell", { name: "page /pricing" }).waitFor();
  await press(page.getByRole("button", { name: "Edit" }));
  await enter(dialog("Edit goal").getByLabel("Name", { exact: true }), "Read the prices");
  await page.getByRole("cell", { name: "Read the prices" }).waitFor();
  assert.deepEqual((await listed("goals")).map(({ name, page }) => [name, page]), [["Read the prices", "/pricing"]]);
  await press(page.getByRole("button", { name: "Delete" }));
  await press(dialog("Delete?").getByRole("button", { name: "Delete" }));
  await page.getByText("No goals yet").waitFor();
  assert.deepEqual(await listed("goals"), []);
});

test("rows of events and pages become goals", async () => {
  await reader.open("overview");
  await press(reader.card("Content").getByRole("button", { name: "Make /pricing a goal" }));
  await press(dialog("Make a goal").getByRole("button", { name: "Make goal" }));
  await reader.card("Goals").getByRole("button", { name: "Visited /pricing" }).waitFor();
  await press(reader.card("Events").getByRole("button", { name: "Show all events" }));
  await press(dialog("Events").getByRole("button", { name: "Make order a goal" }));
  await press(dialog("Make a goal").getByRole("button", { name: "Make goal" }));
  await dialog("Make a goal").waitFor({ state: "detached" });
  assert.deepEqual((await listed("goals")).map(({ name, event_name, page }) => [name, event_name, page]), [["Visited /pricing", null, "/pricing"], ["order", "order", null]]);
});

test("a condition on people holds for all figures", async () => {
  await reader.open("overview");
  await page.keyboard.press("/");
  const opened = dialog("Add a filter");
  await opened.getByRole("tab", { name: "Events", exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await opened.getByLabel("People who").selectOption("did_not");
  await opened.getByLabel("At least so many times").fill("2");
  await opened.getByLabel("What").selectOption("page");
  await opened.getByLabel("When").selectOption("days");
  await opened.getByLabel("Days").fill("7");
  await enter(opened.getByLabel("Page", { exact: true }), "/pri*");
  await page.getByLabel("Filters").getByText("People who visited /pri* fewer than 2 times in the last 7 days").waitFor();
  const filters = [{ field: "name", operator: "is", value: "pageview" }, { field: "path", operator: "matches", value: "/pri*" }];
  await showsUsers({ people: [{ did_not: { filters }, at_least: 2, within: { days: 7 } }] });
  await press(page.getByRole("button", { name: "Visitors: why this number?" }));
  const { result } = await (await server.ask("/explain", { figure: "unique_users", ...last28(), people: [{ did_not: { filters }, at_least: 2, within: { days: 7 } }] })).json();
  assert.equal(await dialog("Visitors: why this number?").locator("[data-result]").innerText(), whole.format(result));
});

test("a segment is saved, chosen, changed and deleted", async () => {
  await reader.open("overview?f=source~is~news&p=did~1~ever~event_name~used");
  const segments = async () => {
    await page.keyboard.press("/");
    await dialog("Add a filter").getByRole("tab", { name: "Segments" }).click();
    return dialog("Add a filter");
  };
  const saved = await segments();
  await enter(saved.getByLabel("Save the present filters as"), "Users from news");
  await saved.waitFor({ state: "detached" });
  const [segment] = await listed("segments");
  const { segment_id: id, filters, people } = segment;
  assert.deepEqual([filters, people], [[{ field: "source", operator: "is", value: "news" }], [{ did: { event_name: "used" }, at_least: 1, within: "ever" }]]);
  assert.deepEqual([...new URL(page.url()).searchParams], [["segment", id]]);
  await page.getByLabel("Filters").getByText("Users from news").waitFor();
  await showsUsers({ segment: id });
  await press(page.getByRole("button", { name: "Remove the segment" }));
  await showsUsers({});
  await press((await segments()).getByRole("button", { name: /^Users from news/ }));
  await showsUsers({ segment: id });
  const opened = await segments();
  await press(opened.getByRole("button", { name: "Edit Users from news" }));
  await press(opened.getByRole("button", { name: "Remove: Source is news" }));
  await press(opened.getByRole("button", { name: "Add a filter on events" }));
  await opened.getByLabel("Field").selectOption("path");
  await opened.getByLabel("Condition").selectOption("starts_with");
  await enter(opened.getByLabel("Value"), "/pri");
  await opened.getByText("Page begins with /pri").waitFor();
  await enter(opened.getByLabel("Name", { exact: true }), "Users");
  await opened.getByRole("button", { name: "Save segment" }).waitFor({ state: "detached" });
  await press(opened.getByRole("button", { name: "Delete Users" }));
  await dialog("Delete?").waitFor();
  await page.keyboard.press("Escape");
  await dialog("Delete?").waitFor({ state: "detached" });
  const [changed] = await listed("segments");
  assert.deepEqual([changed.name, changed.filters, changed.people], ["Users", [{ field: "path", operator: "starts_with", value: "/pri" }], people]);
  await press(opened.getByRole("button", { name: "Delete Users" }));
  await press(dialog("Delete?").getByRole("button", { name: "Delete" }));
  await opened.getByText("No segments yet").waitFor();
  await page.keyboard.press("Escape");
  await showsUsers({});
  assert.equal(new URL(page.url()).searchParams.has("segment"), false);
});

test("a keyboard annotates a day, changes and deletes the text", async () => {
  await reader.open("overview");
  const chart = page.locator("[aria-roledescription=chart]");
  const day = addDays(dayIn("UTC"), -2);
  const spoken = () => page.locator("[aria-live=polite]").first().innerText();
  const toDay = async () => {
    await chart.focus();
    for (const key of ["End", "ArrowLeft", "ArrowLeft"]) await page.keyboard.press(key);
  };
  await toDay();
  await page.keyboard.press("Enter");
  assert.equal(await dialog("Annotations").getByLabel("Day").inputValue(), day);
  await enter(dialog("Annotations").getByLabel("Text"), "New prices");
  await dialog("Annotations").waitFor({ state: "detached" });
  await page.getByRole("list", { name: "Annotations" }).getByText("New prices").waitFor();
  await toDay();
  assert.match(await spoken(), /; New prices$/);
  assert.deepEqual((await listed("annotations")).map(({ day, text }) => [day, text]), [[day, "New prices"]]);
  await page.keyboard.press("Enter");
  await press(dialog("Annotations").getByRole("button", { name: "Edit New prices" }));
  await enter(dialog("Annotations").getByLabel("Text"), "Old prices");
  await dialog("Annotations").getByText("Old prices").first().waitFor();
  await page.keyboard.press("Escape");
  await page.goto(page.url().replace("/overview", "/revenue"));
  await page.getByRole("list", { name: "Annotations" }).getByText("Old prices").waitFor({ state: "attached" });
  // A click on a day opens its annotations.
  const { x, y, width } = await chart.boundingBox();
  await page.mouse.click(x + width - 20, y + 60);
  assert.equal(await dialog("Annotations").getByLabel("Day").inputValue(), dayIn("UTC"));
  await press(dialog("Annotations").getByRole("button", { name: "Delete Old prices" }));
  await press(dialog("Delete?").getByRole("button", { name: "Delete" }));
  await dialog("Annotations").getByText("No annotations in this period").waitFor();
  assert.deepEqual(await listed("annotations"), []);
});

/** Makes one of each. Returns the id of the goal. */
async function makeAll() {
  const { goal_id } = await make("goals", { name: "Ordered", event_name: "order" });
  await make("segments", { name: "Buyers", filters: [{ any: [[{ field: "name", operator: "is", value: "order" }], [{ field: "path", operator: "is_set" }]] }], people: [{ did: { goal: goal_id } }] });
  await make("annotations", { day: addDays(dayIn("UTC"), -2), text: "New prices" });
  return goal_id;
}

for (const [colorScheme, width] of [["light", 1280], ["dark", 390]]) {
  test(`no view has a barrier that axe finds, ${colorScheme}, ${width} px`, async () => {
    const goal = await makeAll();
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: 900 });
    await reader.open(`overview?p=did~1~window~goal~${goal}`);
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await reader.card("Goals").scrollIntoViewIfNeeded();
    await reader.settled();
    await hasNoBarrier();
    await page.getByRole("button", { name: "Annotations" }).click();
    await hasNoBarrier();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    for (const tab of ["People", "Segments"]) {
      await dialog("Add a filter").getByRole("tab", { name: tab }).click();
      await reader.settled();
      await hasNoBarrier();
    }
    await dialog("Add a filter").getByRole("button", { name: "Edit Buyers" }).click();
    await hasNoBarrier();
    await reader.open("settings/goals");
    await page.getByRole("button", { name: "Edit" }).click();
    await hasNoBarrier();
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    await page.setViewportSize({ width: 1280, height: 2_400 });
  });
}

/** Opens a page of whoever has a secret. */
async function asOther(address, token) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 2_400 }, locale: "en-US", timezoneId: "UTC" });
  const other = await context.newPage();
  other.refused = [];
  other.on("response", (response) => response.status() >= 400 && other.refused.push(`${response.status()} ${response.url()}`));
  await other.goto(address);
  if (token) {
    await other.getByLabel("Sign-in code or API token").fill(token);
    await other.getByRole("button", { name: "Sign in" }).click();
  }
  await other.getByRole("region", { name: "Goals", exact: true }).getByRole("button", { name: "Ordered" }).waitFor();
  return other;
}

test("a share shows goals and segments, and changes none", async () => {
  const goal = await makeAll();
  const { url } = await server.manage("POST", `${project}/shares`, { name: "press" });
  const shared = await asOther(url.replace(/^https?:\/\/[^/]+/, server.url));
  const { goals } = await ask("goals", {});
  const [row] = await cells(shared.getByRole("region", { name: "Goals", exact: true }));
  assert.deepEqual([row[0], row[1], row[3], row[4], row.length], ["Ordered", whole.format(goals[0].conversions), whole.format(goals[0].converters), share(goals[0].rate), 5]);
  await shared.getByRole("button", { name: "Ordered" }).click();
  await shared.getByLabel("Filters").getByText("People who reached Ordered").waitFor();
  const { totals } = await ask("report", { interval: "day", people: [{ did: { goal } }] });
  await shared.waitForFunction((users) => document.querySelector("[data-figure=unique_users]")?.textContent === users, whole.format(totals.unique_users));
  for (const name of ["Make", "Annotations", "Edit"]) assert.equal(await shared.getByRole("button", { name }).count(), 0, name);
  await shared.getByRole("button", { name: "Filter", exact: true }).click();
  await shared.getByRole("tab", { name: "Segments" }).click();
  assert.equal(await shared.getByRole("dialog").getByRole("button", { name: /Edit|Delete|Save/ }).count(), 0);
  await shared.getByRole("dialog").getByRole("button", { name: /^Buyers/ }).click();
  await shared.getByLabel("Filters").getByText("Buyers").waitFor();
  assert.deepEqual(shared.refused, []);
  await shared.context().close();
});

test("a member sees goals, segments and annotations, and changes none", async () => {
  await makeAll();
  const { token } = await server.manage("POST", "/api-tokens", { name: "reader", role: "member", scopes: ["analytics:read"] });
  const other = await asOther(server.url, token);
  assert.equal(await other.getByRole("button", { name: /^Make/ }).count(), 0);
  await other.getByRole("button", { name: "Annotations" }).click();
  await other.getByRole("dialog").getByText("New prices").waitFor();
  assert.equal(await other.getByRole("dialog").getByRole("button", { name: /Edit|Delete|Add/ }).count(), 0);
  await other.keyboard.press("Escape");
  await other.getByRole("button", { name: "Filter", exact: true }).click();
  await other.getByRole("tab", { name: "Segments" }).click();
  await other.getByRole("button", { name: /^Buyers/ }).waitFor();
  assert.equal(await other.getByRole("dialog").getByRole("button", { name: /Edit|Delete|Save/ }).count(), 0);
  await other.context().close();
});
