// The page of a project whose early events are gone: it asks for those that are kept, says so, and shows all days where figures are frozen.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { launch } from "./browser.js";
import { addDays, briefMoney, today, whole } from "./figures.js";
import { Headcount } from "./headcount.js";
import { Reader } from "./reader.js";
import { sample } from "./sample.js";

const DAYS = 30;
const YEARS = "period=all";
const NEWS = "f=source~is~news";
const news = [{ field: "source", operator: "is", value: "news" }];
const BEFORE = "period=custom&from=2020-01-01&to=2020-01-31";
const PATHS = [
  ...["", YEARS, NEWS, `${YEARS}&${NEWS}`, "period=yesterday", "period=day", "compare=previous_year", `compare=previous_year&${NEWS}`, "period=12mo", BEFORE, `${BEFORE}&${NEWS}`].map((query) => `overview?${query}`),
  ...["", YEARS, "compare=previous_year", BEFORE].map((query) => `revenue?${query}`),
  ...["", YEARS, "compare=previous_year", BEFORE].flatMap((query) => [`funnels?s=page~/&s=event_name~order&${query}`, `journeys?${query}`]),
  ...["live", "retention", "retention?interval=month", "health?range_days=365", "settings", "settings/tracking"],
  ...["companies", "people", "groups"].map((page) => `${page}?range_days=365`),
  ...["", YEARS, BEFORE].map((query) => `people/user-4?by=user_id&${query}`),
];

let browser, server, reader, floor;

before(async () => {
  server = await Headcount.start();
  const events = sample(Date.now());
  assert.equal((await (await server.ask("/batch", { events })).json()).recorded, events.length);
  ({ retention_floor: floor } = await server.manage("PATCH", `/projects/${server.initial.project_id}`, { retention_days: DAYS }));
  assert.equal(floor, addDays(today(), 1 - DAYS));
  browser = await launch();
  reader = await Reader.signIn(browser, server);
});

beforeEach(() => (reader.refused = []));

after(async () => {
  await browser?.close();
  await server?.stop();
});

const long = (day) => new Date(day).toLocaleDateString("en-US", { timeZone: "UTC", year: "numeric", month: "short", day: "numeric" });
const notice = () => `Events before ${long(floor)} are no longer stored`;
const byAll = () => `Some projects no longer store events before ${long(floor)}`;
const report = async (body) => (await server.ask("/analytics/report", { end_date: today(), interval: "day", ...body })).json();

for (const path of PATHS) {
  test(`nothing that is gone is asked for: ${path}`, async () => {
    await reader.open(path);
    assert.deepEqual(reader.refused, []);
    assert.doesNotMatch(await reader.text(), /Couldn't load this/);
  });
}

test("a company and a group, with what their projects keep", async () => {
  const { companies } = await server.get("/companies/top?range_days=365");
  for (const path of [`companies/${companies[0].company_id}?range_days=365`, "groups/team-0?type=team&range_days=365"]) {
    await reader.open(path);
    assert.ok((await reader.text()).includes(byAll()), path);
  }
  for (const path of ["companies", "people", "groups"]) {
    await reader.open(`${path}?range_days=30`);
    assert.ok(!(await reader.text()).includes(byAll()), `${path}: all of these days are kept`);
    await reader.open(`${path}?range_days=90`);
    assert.ok((await reader.text()).includes(byAll()), path);
  }
  assert.deepEqual(reader.refused, []);
});

test("figures count all days, and are compared; lists count those that are kept", async () => {
  await reader.open("overview?period=91d");
  const { totals } = await report({ start_date: addDays(today(), -90) });
  const kept = await report({ start_date: floor });
  assert.ok(totals.pageviews > kept.totals.pageviews);
  assert.equal(await reader.figure("pageviews"), whole.format(totals.pageviews));
  assert.equal(await reader.figure("revenue"), briefMoney(totals.revenue));
  assert.ok((await reader.text()).includes(`${notice()}, so the lists below begin on that day`));
  const { rows } = await (await server.ask("/analytics/breakdown", { start_date: floor, end_date: today(), dimension: "path", order_by: "pageviews", limit: 9 })).json();
  const shown = await reader.card("Content").locator("ul").last().locator("li").evaluateAll((items) => items.map((item) => item.children[1].innerText));
  assert.deepEqual(shown, rows.filter(({ value }) => value !== null).map(({ pageviews }) => whole.format(pageviews)));
  await reader.open("overview");
  const { previous } = await report({ start_date: addDays(today(), -27), compare: "previous_period" });
  assert.ok(previous.totals.pageviews > 0);
  assert.match(await reader.text(), /compared with/);
  assert.ok(!(await reader.text()).includes(notice()), "all of these days are kept");
  assert.match(await reader.change("pageviews"), /%/);
});

test("with a filter, figures count the days that are kept, and are not compared with others", async () => {
  await reader.open(`overview?period=91d&${NEWS}`);
  const { totals } = await report({ start_date: floor, filters: news });
  assert.equal(await reader.figure("pageviews"), whole.format(totals.pageviews));
  assert.equal(await reader.change("pageviews"), "");
  const text = await reader.text();
  assert.equal(text.split(notice()).length, 2, "it is said once");
  assert.ok(text.includes(`${notice()}, so there is nothing to compare with`), text);
  await reader.open(`overview?${NEWS}`);
  assert.ok((await reader.text()).includes("there is nothing to compare with"), "the days are kept, those before are not");
  await reader.open(`overview?period=7d&${NEWS}`);
  assert.match(await reader.text(), /compared with/);
  assert.ok(!(await reader.text()).includes(notice()));
});

test("days of which nothing is kept say so", async () => {
  await reader.open(`overview?${BEFORE}&${NEWS}`);
  assert.ok((await reader.text()).includes("Events from this period are no longer stored"));
  assert.equal(await reader.page.locator("[data-figure]").count(), 0);
});

test("what explains a figure is of the days that are kept", async () => {
  await reader.open("revenue?period=91d");
  await reader.page.getByRole("button", { name: "Revenue: why this number?", exact: true }).click();
  const dialog = reader.page.getByRole("dialog", { name: "Revenue: why this number?" });
  await dialog.locator("[data-result]").waitFor();
  assert.ok((await dialog.innerText()).includes(notice()));
  await reader.open(`revenue?${BEFORE}`);
  await reader.page.getByRole("button", { name: "Revenue: why this number?", exact: true }).click();
  await dialog.getByText("Events from this period are no longer stored").waitFor();
  assert.deepEqual(reader.refused, []);
});

test("a floor that rises while the page is open is followed", async () => {
  await reader.open(`overview?${NEWS}`);
  const raised = await server.manage("PATCH", `/projects/${server.initial.project_id}`, { retention_days: 10 });
  await reader.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  floor = raised.retention_floor;
  await reader.page.getByText(notice()).waitFor();
  await reader.settled();
  const { totals } = await report({ start_date: floor, filters: news });
  assert.equal(await reader.figure("pageviews"), whole.format(totals.pageviews));
  assert.doesNotMatch(await reader.text(), /Couldn't load this/);
});
