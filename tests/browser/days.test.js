// Days and people on the page: what a period is compared with, whose days are shown, and who a link leads to.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch } from "./browser.js";
import { addDays, briefMoney, whole } from "./figures.js";
import { Headcount } from "./headcount.js";
import { Reader } from "./reader.js";

const ZONE = "Pacific/Kiritimati";
const HOUR_MS = 3_600_000;

let browser, server, reader, today;

/** The organization's day is 14 hours ahead: the first hours of its days are of the day before in UTC. */
const instant = (day, hour) => Date.parse(day) + (hour - 14) * HOUR_MS;

before(async () => {
  server = await Headcount.start();
  await server.manage("PATCH", "/organization", { timezone: ZONE });
  today = new Date(Date.now() + 14 * HOUR_MS).toISOString().slice(0, 10);
  const order = (day, value) => ({ name: "order", user_id: "buyer", value, currency: "USD", timestamp: instant(day, 12) });
  const known = (user_id, email, count) => Array.from({ length: count }, (_, index) => ({ name: "identify", ...(user_id ? { user_id } : { anonymous_id: "visitor" }), metadata: { email }, timestamp: instant(addDays(today, -3), 2) + index }));
  const events = [
    order(addDays(today, -10), 300),
    order(addDays(today, -365 - 10), 100),
    order(addDays(today, -40), 1_000),
    ...known("ada", "shared@acme.com", 5),
    // Seen later than ada.
    ...known("ben", "shared@acme.com", 2).map((event) => ({ ...event, timestamp: instant(addDays(today, -2), 2) })),
    // An id that looks like an address.
    ...known("odd@acme.com", "other@acme.com", 4),
    ...known(null, "mail@acme.com", 3),
    { name: "pageview", url: "https://a.example/", anonymous_id: "a", timestamp: Date.now() - 1_000 },
    { name: "pageview", url: "https://a.example/", anonymous_id: "a", timestamp: instant(addDays(today, -1), 23) },
  ];
  assert.equal((await (await server.ask("/batch", { events })).json()).recorded, events.length);
  browser = await launch();
  reader = await Reader.signIn(browser, server);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const long = (day) => new Date(day).toLocaleDateString("en-US", { timeZone: "UTC", year: "numeric", month: "short", day: "numeric" });

test("revenue is compared with the year before, if that is chosen", async () => {
  await reader.open("revenue?compare=previous_year");
  assert.equal(await reader.figure("total_revenue"), briefMoney(300));
  assert.equal(await reader.change("total_revenue"), "+200%");
  await reader.open("revenue");
  assert.equal(await reader.change("total_revenue"), "-70%");
  await reader.open("revenue?compare=none");
  assert.equal(await reader.change("total_revenue"), "");
});

test("the longest period says how long it is", async () => {
  for (const page of ["overview", "revenue"]) {
    await reader.open(`${page}?period=all`);
    const text = await reader.text();
    assert.ok(text.includes("Last 10 years") && !text.includes("All time"), text);
    assert.ok(text.includes(String(Number(today.slice(0, 4)) - 10)), text);
  }
});

test("today is so far, and is compared with no whole day", async () => {
  await reader.open("overview?period=day");
  assert.equal(await reader.figure("pageviews"), "1");
  for (const id of ["unique_users", "sessions", "pageviews"]) assert.equal(await reader.change(id), "so far");
  await reader.open("revenue?period=day");
  assert.equal(await reader.change("orders"), "so far");
  await reader.open("overview?period=yesterday");
  assert.equal(await reader.change("pageviews"), "new");
});

test("first and last seen are the organization's days", async () => {
  const first = addDays(today, -3);
  assert.notEqual(new Date(instant(first, 2)).toISOString().slice(0, 10), first);
  await reader.open("people/ada?by=user_id");
  assert.ok((await reader.text()).includes(`First seen ${long(first)}, last seen ${long(first)}`), await reader.text());
  const { company_id } = await server.get("/companies/lookup?domain=acme.com");
  await reader.open(`companies/${company_id}`);
  assert.ok((await reader.text()).includes(`First seen ${long(first)}, last seen ${long(addDays(today, -2))}`), await reader.text());
  await reader.open("settings/projects");
  assert.ok((await reader.text()).includes(long(today)));
});

for (const list of ["people", "a company's people"]) {
  test(`links of ${list} lead to the person of their row`, async () => {
    const { company_id } = await server.get("/companies/lookup?domain=acme.com");
    const path = list === "people" ? "people" : `companies/${company_id}`;
    const rows = list === "people" ? (await server.get("/identities/top")).identities.filter(({ email }) => email) : (await server.get(`/companies/${company_id}/top-users`)).users;
    assert.deepEqual(rows.map(({ user_id, email, events }) => [user_id, email, events]), [
      ["ada", "shared@acme.com", 5],
      ["odd@acme.com", "other@acme.com", 4],
      [null, "mail@acme.com", 3],
      ["ben", "shared@acme.com", 2],
    ]);
    for (const { user_id, email, events } of rows) {
      await reader.open(path);
      const links = reader.page.locator("main tbody tr").filter({ has: reader.page.getByRole("cell", { name: String(events), exact: true }) }).getByRole("link");
      await links.first().click();
      await reader.page.getByRole("heading", { level: 2, name: user_id ?? email, exact: true }).waitFor();
      assert.equal(await reader.figure("events"), whole.format(events), user_id ?? email);
    }
  });
}

test("a person is found by a user id or an e-mail address, whatever it looks like", async () => {
  reader.refused = [];
  for (const [name, events] of [["odd@acme.com", 4], ["mail@acme.com", 3], ["ada", 5]]) {
    await reader.open("people");
    await reader.page.getByLabel("Find a person by e-mail or user ID").fill(name);
    await reader.page.keyboard.press("Enter");
    await reader.page.getByRole("heading", { level: 2, name, exact: true }).waitFor();
    assert.equal(await reader.figure("events"), String(events));
  }
  await reader.open("people");
  await reader.page.getByLabel("Find a person by e-mail or user ID").fill("nobody");
  await reader.page.keyboard.press("Enter");
  assert.match(await reader.page.getByRole("alert").innerText(), /No one has .* nobody/);
});
