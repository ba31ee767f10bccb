// Funnels and journeys on the page: what they show is what the API answers, in the organization's days.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { launch } from "./browser.js";
import { addDays, duration, money, share, whole } from "./figures.js";
import { Headcount } from "./headcount.js";
import { Reader } from "./reader.js";
import { sample } from "./sample.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const ZONE = "Pacific/Kiritimati";
const STEPS = "s=page~/**&s=event_name~used&s=event_name~order";
const steps = [{ page: "/**" }, { event_name: "used" }, { event_name: "order" }];

let browser, server, reader, page, project;

before(async () => {
  server = await Headcount.start();
  project = `/projects/${server.initial.project_id}`;
  await server.manage("PATCH", "/organization", { timezone: ZONE, fx_rates: { EUR: 1.08, JPY: 0.007 } });
  const events = sample(Date.now());
  assert.equal((await (await server.ask("/batch", { events })).json()).recorded, events.length);
  browser = await launch();
  reader = await Reader.signIn(browser, server);
  page = reader.page;
});

beforeEach(async () => {
  await page.goto("about:blank");
  reader.refused = [];
  for (const { funnel_id } of (await server.get(`${project}/funnels`)).funnels) await server.manage("DELETE", `${project}/funnels/${funnel_id}`);
});

afterEach(() => assert.deepEqual(reader.refused, []));

after(async () => {
  await browser?.close();
  await server?.stop();
});

const last28 = () => {
  const end_date = new Intl.DateTimeFormat("en-CA", { timeZone: ZONE }).format(new Date());
  return { start_date: addDays(end_date, -27), end_date };
};
const ask = async (question, body) => (await server.ask(`/analytics/${question}`, { ...last28(), ...body })).json();
const kept = async () => (await server.get(`${project}/funnels`)).funnels;
const dialog = (name) => page.getByRole("dialog", { name });
const cells = (locator) => locator.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
const bars = (shown = page) => shown.getByRole("list", { name: "Funnel" }).getByRole("listitem").evaluateAll((items) => items.map((item) => item.innerText.split(/\s*\n\s*/).filter(Boolean)));

/** The words of the bars of an answer. */
function words({ steps, currency }) {
  return steps.map(({ name, entities, rate, step_rate, median_sec, revenue }, index) => {
    const before = index ? [`${whole.format(steps[index - 1].dropped)} stopped before`, `${share(step_rate)} of the step before`] : [];
    const time = median_sec === null ? [] : [`half within ${duration(median_sec)}`];
    return [`${index + 1}. ${name}`, `${whole.format(entities)} ${share(rate)}`, ...before, ...time, ...(revenue ? [money(revenue, currency)] : [])];
  });
}

/** Focuses a control, and presses Enter. */
async function press(control) {
  await control.focus();
  await page.keyboard.press("Enter");
}

async function hasNoBarrier(shown = page) {
  await shown.evaluate(AXE);
  const { violations } = await shown.evaluate((runOnly) => axe.run({ runOnly }), AXE_TAGS);
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
  assert.ok((await shown.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "no sideways scroll");
}

/** Waits until the bars show an answer. */
async function showsFunnel(body) {
  const answer = await ask("funnel", body);
  const end = Date.now() + 15_000;
  while (JSON.stringify(await bars()) !== JSON.stringify(words(answer)) && Date.now() < end) await reader.settled();
  assert.deepEqual(await bars(), words(answer));
  return answer;
}

test("steps that are typed make a funnel, and the address keeps it", async () => {
  await reader.open("funnels");
  await page.getByText("A funnel has at least two steps").waitFor();
  const step = (number) => page.getByRole("group", { name: `Step ${number}` });
  await step(1).getByLabel("What").selectOption("page");
  await step(1).getByLabel("Page").focus();
  await page.waitForFunction(() => [...document.querySelectorAll("datalist option")].some(({ value }) => value === "/pricing"));
  await step(1).getByLabel("Page").fill("/**");
  await step(2).getByLabel("Event name").fill("used");
  await press(page.getByRole("button", { name: "Add step" }));
  await step(3).getByLabel("Event name").fill("order");
  const answer = await showsFunnel({ steps });
  assert.ok(answer.steps[0].entities > answer.completed && answer.completed > 0, JSON.stringify(answer));
  assert.deepEqual([await reader.figure("started"), await reader.figure("completed"), await reader.figure("rate"), await reader.figure("median_sec")], [whole.format(answer.steps[0].entities), whole.format(answer.completed), share(answer.rate), duration(answer.median_sec)]);
  await page.getByLabel("Within").fill("1");
  await page.getByLabel("Unit").selectOption("minutes");
  await page.getByLabel("Order").selectOption("any");
  await page.getByLabel("Count").selectOption("account");
  await showsFunnel({ steps, within: { minutes: 1 }, order: "any", level: "account" });
  await page.reload();
  await showsFunnel({ steps, within: { minutes: 1 }, order: "any", level: "account" });
  await press(page.getByRole("button", { name: "Move step 2 up" }));
  await press(page.getByRole("button", { name: "Remove step 3" }));
  await showsFunnel({ steps: [steps[1], steps[0]], within: { minutes: 1 }, order: "any", level: "account" });
});

test("a keyboard gives a step a name and a filter, and takes them away", async () => {
  await reader.open(`funnels?${STEPS}`);
  await showsFunnel({ steps });
  const details = page.getByRole("button", { name: "Name and filters of step 2" });
  await press(details);
  await page.getByLabel("Name of step 2").fill("Used it");
  await page.getByLabel("Field").selectOption("source");
  await page.getByLabel("Value").fill("news");
  await page.keyboard.press("Enter");
  const changed = [steps[0], { ...steps[1], name: "Used it", filters: [{ field: "source", operator: "is", value: "news" }] }, steps[2]];
  await showsFunnel({ steps: changed });
  await press(details);
  await page.getByText("Named “Used it”. Only where Source is news").waitFor();
  await page.reload();
  await showsFunnel({ steps: changed });
  await press(details);
  await press(page.getByRole("button", { name: "Remove: Source is news" }));
  await page.getByLabel("Name of step 2").fill("");
  await showsFunnel({ steps });
});

test("a breakdown shows the rows of the API, and a row filters", async () => {
  await reader.open(`funnels?${STEPS}&breakdown=source&within=session`);
  const answer = await showsFunnel({ steps, within: "session", breakdown: "source" });
  const rows = await cells(reader.card("By source"));
  assert.deepEqual(rows, answer.breakdown.map(({ value, steps, rate }) => [value ?? "(none)", ...steps.map((some) => whole.format(some)), share(rate)]));
  const { value } = answer.breakdown.find(({ value }) => value !== null);
  await press(reader.card("By source").getByRole("button", { name: value, exact: true }));
  await showsFunnel({ steps, within: "session", filters: [{ field: "source", operator: "is", value }] });
  await page.getByLabel("Filters").getByText(value).waitFor();
});

test("a gap lists who stopped there, and leads to them", async () => {
  await reader.open(`funnels?${STEPS}`);
  const { people } = await ask("funnel/people", { steps, step: 2, outcome: "dropped", limit: 50 });
  assert.ok(people.length > 1);
  await press(page.getByRole("button", { name: /stopped before/ }).nth(1));
  const list = dialog("Stopped after used");
  await list.locator("tbody tr").first().waitFor();
  assert.deepEqual((await cells(list)).map(([name]) => name), people.map(({ resolved_identifier }) => resolved_identifier));
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
  // A click on the hatched part of the bar is the same.
  await page.getByTitle(/stopped before$/).nth(1).click();
  await list.getByRole("button", { name: people[0].resolved_identifier }).click();
  await page.getByRole("heading", { level: 2, name: people[0].resolved_identifier }).waitFor();
  // Whoever has an e-mail is looked for among the user IDs first.
  reader.refused = reader.refused.filter((one) => !one.includes("/identities/profile"));
});

test("a keyboard saves, opens, renames and deletes funnels", async () => {
  await reader.open(`funnels?${STEPS}&within=30days&f=source~is~news`);
  await press(page.getByRole("button", { name: "Saved funnels" }));
  await dialog("Saved funnels").getByLabel("Save this funnel as").fill("To an order");
  await page.keyboard.press("Enter");
  await dialog("Saved funnels").waitFor({ state: "detached" });
  const [{ funnel_id, ...funnel }] = await kept();
  assert.deepEqual([funnel.name, funnel.steps, funnel.within, funnel.filters], ["To an order", steps, { days: 30 }, [{ field: "source", operator: "is", value: "news" }]]);
  await reader.open("funnels");
  await press(page.getByRole("button", { name: "Saved funnels" }));
  await press(dialog("Saved funnels").getByRole("button", { name: "To an order", exact: true }));
  await showsFunnel({ steps, within: { days: 30 }, filters: funnel.filters });
  assert.equal(new URL(page.url()).searchParams.get("funnel"), funnel_id);
  await page.getByLabel("Order").selectOption("strict");
  await press(page.getByRole("button", { name: "Saved funnels" }));
  await press(dialog("Saved funnels").getByRole("button", { name: "Save changes to To an order" }));
  await dialog("Saved funnels").waitFor({ state: "detached" });
  assert.equal((await kept())[0].order, "strict");
  await press(page.getByRole("button", { name: "Saved funnels" }));
  await press(dialog("Saved funnels").getByRole("button", { name: "Rename To an order" }));
  await dialog("Saved funnels").getByLabel("New name of To an order").fill("Orders");
  await page.keyboard.press("Enter");
  await press(dialog("Saved funnels").getByRole("button", { name: "Delete Orders" }));
  await press(dialog("Delete?").getByRole("button", { name: "Delete" }));
  await dialog("Saved funnels").getByText("No saved funnels").waitFor();
  assert.deepEqual(await kept(), []);
});

/** Waits until the tables show an answer. */
async function showsJourneys(body) {
  const answer = await ask("journeys", body);
  const expected = answer.steps.flatMap(({ nodes }) => nodes.map(({ value, other, sessions, users, exits, revenue }) => [value ?? `${other} other ${other === 1 ? "value" : "values"}`, ...[sessions, users, exits].map((some) => whole.format(some)), money(revenue)]));
  const shown = async () => (await cells(reader.card("Steps"))).map((row) => [row[0], ...row.slice(2, 6)]);
  const end = Date.now() + 15_000;
  while (JSON.stringify(await shown()) !== JSON.stringify(expected) && Date.now() < end) await reader.settled();
  assert.deepEqual(await shown(), expected);
  const boxes = await page.locator("svg g g[data-picked] text").evaluateAll((texts) => texts.map((text) => text.querySelector("tspan").textContent.trim()));
  assert.deepEqual(boxes, expected.map(([, sessions]) => sessions));
  const top = await cells(reader.card("Commonest journeys"));
  assert.deepEqual(top.map(([path, sessions]) => [path, sessions]), answer.top.map(({ path, sessions }) => [(body.to ? path.toReversed() : path).join(" → "), `${whole.format(sessions)} (${share(sessions / answer.sessions)})`]));
  return answer;
}

test("journeys show the API's answer, from and to a page", async () => {
  await reader.open("journeys");
  await showsJourneys({});
  await page.getByLabel("Length").selectOption("3");
  await page.getByLabel("At each step").selectOption("5");
  await page.getByLabel("Show", { exact: true }).selectOption("path_or_event");
  const { steps } = await showsJourneys({ by: "path_or_event", depth: 3, rows: 5 });
  assert.ok(steps.some(({ nodes }) => nodes.some(({ value, other }) => value === null && other > 0)), "others are one row");
  await page.getByLabel("Show", { exact: true }).selectOption("path");
  await showsJourneys({ depth: 3, rows: 5 });
  await press(reader.card("Steps").getByRole("button", { name: "From here: /pricing" }).first());
  await showsJourneys({ depth: 3, rows: 5, from: "/pricing" });
  await page.locator("svg g g[data-picked]").first().click();
  await press(reader.card("Flow").getByRole("button", { name: "To here: /pricing" }));
  await showsJourneys({ depth: 3, rows: 5, to: "/pricing" });
  await page.getByLabel("Begin").selectOption("begin");
  await page.getByLabel("Page", { exact: true }).fill("/d*");
  await page.keyboard.press("Enter");
  await showsJourneys({ depth: 3, rows: 5, from: "/d*" });
  await press(page.getByRole("button", { name: "Group pages" }));
  await dialog("Group pages").getByLabel("Name").fill("Reading");
  await dialog("Group pages").getByLabel("Pages", { exact: true }).fill("/{docs,blog}");
  await page.keyboard.press("Enter");
  await dialog("Group pages").getByRole("button", { name: "Remove Reading" }).click();
  await dialog("Group pages").getByLabel("Name").fill("Reading");
  await dialog("Group pages").getByLabel("Pages", { exact: true }).fill("/*o*");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.getByLabel("Begin").selectOption("");
  await showsJourneys({ depth: 3, rows: 5, groups: [{ name: "Reading", pattern: "/*o*" }] });
});

for (const [colorScheme, width] of [["light", 1280], ["dark", 390]]) {
  test(`no view has a barrier that axe finds, ${colorScheme}, ${width} px`, async () => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: 900 });
    await reader.open("funnels");
    await hasNoBarrier();
    await reader.open(`funnels?${STEPS}&breakdown=source`);
    await page.getByRole("button", { name: "Name and filters of step 1" }).click();
    await hasNoBarrier();
    await page.getByRole("button", { name: /stopped before/ }).first().click();
    await page.getByRole("dialog").locator("tbody tr").first().waitFor();
    await hasNoBarrier();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Saved funnels" }).click();
    await hasNoBarrier();
    await reader.open("journeys");
    await page.locator("svg g g[data-picked]").first().click();
    await hasNoBarrier();
    await page.getByRole("button", { name: "Group pages" }).click();
    await hasNoBarrier();
    await reader.open("journeys?begin=/nothing");
    await hasNoBarrier();
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    await page.setViewportSize({ width: 1280, height: 2_400 });
  });
}

test("a share shows funnels and journeys, and nobody in them", async () => {
  await server.manage("POST", `${project}/funnels`, { name: "For the press", steps });
  const { url } = await server.manage("POST", `${project}/shares`, { name: "press" });
  const context = await browser.newContext({ viewport: { width: 1280, height: 2_400 }, locale: "en-US", timezoneId: "UTC" });
  const shared = await context.newPage();
  const refused = [];
  shared.on("response", (response) => response.status() >= 400 && refused.push(`${response.status()} ${response.url()}`));
  const link = url.replace(/^https?:\/\/[^/]+/, server.url);
  await shared.goto(link);
  await shared.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await shared.goto(link.replace("#", `/funnels?${STEPS}#`));
  await shared.getByRole("list", { name: "Funnel" }).waitFor();
  const answer = await ask("funnel", { steps });
  assert.deepEqual(await bars(shared), words({ steps: answer.steps.map(({ revenue, ...step }) => step) }));
  assert.equal(await shared.getByRole("button", { name: /stopped before/ }).count(), 0);
  await shared.getByRole("button", { name: "Saved funnels" }).click();
  await shared.getByRole("dialog").getByRole("button", { name: "For the press", exact: true }).click();
  await shared.getByRole("dialog").waitFor({ state: "detached" });
  await shared.getByText("For the press").waitFor();
  await shared.getByRole("list", { name: "Funnel" }).waitFor();
  await shared.getByRole("link", { name: "Journeys" }).click();
  const { sessions } = await ask("journeys", {});
  await shared.getByText(`${whole.format(sessions)} sessions.`).waitFor();
  assert.deepEqual(refused, []);
  await context.close();
});

test("a member sees who stopped nowhere, and saves nothing", async () => {
  await server.manage("POST", `${project}/funnels`, { name: "To an order", steps });
  const { token } = await server.manage("POST", "/api-tokens", { name: "reader", role: "member", scopes: ["analytics:read", "identities:read"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 2_400 }, locale: "en-US", timezoneId: "UTC" });
  const other = await context.newPage();
  await other.goto(server.url);
  await other.getByLabel("Sign-in code or API token").fill(token);
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByRole("link", { name: "Funnels" }).click();
  await other.getByRole("button", { name: "Saved funnels" }).click();
  await other.getByRole("dialog").getByRole("button", { name: "To an order", exact: true }).click();
  await other.getByRole("list", { name: "Funnel" }).waitFor();
  assert.equal(await other.getByRole("button", { name: /stopped before/ }).count(), 0);
  await other.getByRole("button", { name: "Saved funnels" }).click();
  assert.equal(await other.getByRole("dialog").getByRole("button", { name: /Rename|Delete|Save/ }).count(), 0);
  await context.close();
});
