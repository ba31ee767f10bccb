// Company profiles in the page: a target account is made, filled from a website on this machine, and deleted.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch } from "./browser.js";
import { Headcount } from "./headcount.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = 30_000;
const HOME = `<!doctype html><title>Globex</title><meta name="description" content="Weather machines, and other ambitions.">
  <script type="application/ld+json">{"@type": "Organization", "name": "Globex Corporation", "sameAs": ["https://www.linkedin.com/company/globex"]}</script>
  <a href="mailto:hello@globex.example">Write to us</a>`;

let browser, server, site, page, website;
/** Ends a request that the website holds back. */
let go;

before(async () => {
  const held = new Promise((resolve) => (go = resolve));
  site = createServer(async (asked, answer) => {
    if (asked.url !== "/") return answer.writeHead(404).end();
    await held;
    answer.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(HOME);
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const host = `127.0.0.1:${site.address().port}`;
  website = `http://${host}`;
  server = await Headcount.start(`--outbound-allow=${host}`);
  browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
  page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(server.url);
  await page.getByLabel("Sign-in code or API token").fill(server.initial.api_token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.goto(`${server.url}/ui/${server.initial.project_id}/companies`);
});

after(async () => {
  go?.();
  await browser?.close();
  await server?.stop();
  site?.close();
  site?.closeAllConnections();
});

async function assertAccessible() {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], colorScheme);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** The facts of the profile that is shown, by their names. */
const facts = () => page.locator("dl > div").evaluateAll((rows) => Object.fromEntries(rows.map((row) => [row.querySelector("dt").innerText, row.querySelector("dd").innerText])));

const card = () => page.getByRole("region", { name: "Company profiles" });

async function add(label, address) {
  await card().getByLabel("Label").fill(label);
  await card().getByLabel("Website").fill(address);
  await card().getByRole("button", { name: "Add target account" }).click();
}

test("without the capability, the server's refusal is shown, and what was typed stays", async () => {
  await card().getByText("No profiles yet").waitFor();
  await add("Globex", website);
  const refusal = await card().getByRole("alert").innerText();
  assert.match(refusal, /target_accounts/);
  assert.equal(await card().getByLabel("Label").inputValue(), "Globex");
  assert.deepEqual((await server.get("/company-profiles")).company_profiles, []);
});

test("a target account is made and listed", async () => {
  await server.manage("PATCH", "/organization", { capabilities: ["target_accounts"], actions_balance: 1 });
  await add("Globex", website);
  await card().getByRole("link", { name: "Globex" }).waitFor();
  const [profile] = (await server.get("/company-profiles")).company_profiles;
  assert.deepEqual([profile.label, profile.website, profile.kind, profile.description], ["Globex", website, "account", null]);
  await assertAccessible();
});

test("a build shows that it is under way, and then what it found", async () => {
  await card().getByRole("link", { name: "Globex" }).click();
  await page.getByRole("heading", { level: 2, name: "Globex" }).waitFor();
  assert.equal((await facts()).Description, "unknown");
  await page.getByRole("button", { name: "Research" }).click();
  await page.getByRole("progressbar").waitFor();
  assert.ok(await page.getByRole("button", { name: "Research" }).isDisabled());
  go();
  await page.getByText("Research finished. It cost 1 Action.").waitFor();
  await page.getByRole("heading", { level: 2, name: "Globex Corporation" }).waitFor();
  assert.equal(await page.getByRole("progressbar").count(), 0);
  const [profile] = (await server.get("/company-profiles")).company_profiles;
  const shown = await facts();
  assert.equal(shown.Activity, "unknown", "an address has no domain");
  assert.deepEqual([shown.Description, shown["E-mail"], shown["Social profiles"]], [profile.description, profile.emails.join(", "), Object.keys(profile.social).join(" ")]);
  assert.equal(profile.description, "Weather machines, and other ambitions.");
  const read = await page.getByRole("region", { name: "Sources" }).locator("tbody tr").count();
  assert.deepEqual([read, read > 0], [profile.sources.length, true]);
  await assertAccessible();
});

test("a build that fails says why, and changes nothing", async () => {
  const before = (await server.get("/company-profiles")).company_profiles;
  await page.getByRole("button", { name: "Research" }).click();
  assert.match(await page.getByRole("alert").innerText(), /Action/, "the only one is spent");
  await server.manage("PATCH", "/organization", { actions_balance: 1 });
  site.close();
  site.closeAllConnections();
  await page.getByRole("button", { name: "Research" }).click();
  await page.getByRole("alert").filter({ hasText: website }).waitFor();
  const after = (await server.get("/company-profiles")).company_profiles;
  assert.deepEqual(after.map(({ description, name }) => [description, name]), before.map(({ description, name }) => [description, name]));
});

test("a profile leads to what was recorded of the company", async () => {
  const open = async (label) => {
    await page.getByRole("link", { name: "All companies" }).click();
    await card().getByRole("link", { name: label }).click();
    await page.getByRole("heading", { level: 2, name: label }).waitFor();
  };
  for (const [label, address] of [["Acme", "https://acme.com"], ["Initech", "https://initech.com"]]) await server.manage("POST", "/company-profiles", { label, website: address });
  await server.ask("/batch", { events: [{ name: "visit", user_id: "ada", metadata: { email: "ada@acme.com" } }] });
  await page.reload();
  await open("Initech");
  await page.getByText("no events recorded").waitFor();
  await open("Acme");
  await page.getByRole("link", { name: "1 event from 1 person in the last 30 days" }).click();
  await page.getByRole("heading", { level: 2, name: "acme.com" }).waitFor();
  for (const { id, label } of (await server.get("/company-profiles")).company_profiles) if (label !== "Globex") await server.manage("DELETE", `/company-profiles/${id}`);
});

test("a profile is deleted after a warning", async () => {
  await page.getByRole("link", { name: "All companies" }).click();
  await card().getByRole("link", { name: "Globex" }).waitFor();
  for (const label of ["Acme", "Initech"]) await card().getByRole("link", { name: label }).waitFor({ state: "detached" });
  await card().getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await card().getByText("No profiles yet").waitFor();
  assert.deepEqual((await server.get("/company-profiles")).company_profiles, []);
});
