// Channels on the page: a keyboard makes, tests and deletes them, and the page never shows their secrets.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch } from "./browser.js";
import { Headcount } from "./headcount.js";
import { Reader } from "./reader.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser, server, chat, reader, page;
const [statuses, bodies] = [[200, 404], []];

before(async () => {
  chat = createServer((request, answer) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      bodies.push(JSON.parse(body));
      answer.writeHead(statuses.shift()).end();
    });
  });
  await new Promise((started) => chat.listen(0, "127.0.0.1", started));
  server = await Headcount.start("--outbound-allow=127.0.0.1");
  browser = await launch();
  reader = await Reader.signIn(browser, server);
  page = reader.page;
});

after(async () => {
  await browser?.close();
  await server?.stop();
  chat?.close();
});

async function press(control) {
  await control.focus();
  await page.keyboard.press("Enter");
}

test("an owner makes a channel, tries it, and deletes it", async () => {
  const host = `127.0.0.1:${chat.address().port}`;
  await reader.open("settings/channels");
  await page.getByText("No channels").waitFor();
  await page.getByLabel("Name").fill("Growth");
  await page.getByLabel("Kind").selectOption("discord");
  await page.getByLabel("URL").fill(`http://${host}/hooks/s3cr3t`);
  await page.getByLabel("URL").press("Enter");
  const row = page.getByRole("row").filter({ hasText: "Growth" });
  await row.getByText(host).waitFor();
  await press(row.getByRole("button", { name: "Send a test to Growth" }));
  await row.getByText("Delivered").waitFor();
  assert.match(bodies[0].content, /test of the channel Growth/);
  await press(row.getByRole("button", { name: "Send a test to Growth" }));
  await row.getByText("Refused: the chat answered 404").waitFor();
  assert.ok(!(await page.content()).includes("s3cr3t"));
  await page.getByLabel("Kind").selectOption("telegram");
  await page.getByLabel("Chat ID").waitFor();
  for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "no sideways scroll");
  }
  await press(row.getByRole("button", { name: "Delete" }));
  await press(page.getByRole("dialog").getByRole("button", { name: "Delete" }));
  await page.getByText("No channels").waitFor();
  assert.deepEqual((await server.manage("GET", "/channels")).channels, []);
  assert.deepEqual(reader.refused, []);
});
