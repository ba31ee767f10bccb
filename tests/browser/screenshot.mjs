// Takes the picture of README.md: the overview of `headcount demo`, in chromium.
//
// usage: node screenshot.mjs [FILE]

import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.js";
import { demo } from "./headcount.js";

const FILE = process.argv[2] ?? fileURLToPath(new URL("../../docs/overview.png", import.meta.url));
const SIZE = { width: 1400, height: 976 };
const PATIENCE_MS = 60_000;

const { started, link } = await demo();
const browser = await launch();
try {
  const context = await browser.newContext({ viewport: SIZE, colorScheme: "light", reducedMotion: "reduce", timezoneId: "UTC", locale: "en-US" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(link);
  await page.waitForSelector("main svg path");
  // Both cards have their rows, and the stream of live figures is open.
  await page.waitForFunction(() => ["google", "/pricing"].every((text) => document.querySelector("main").innerText.includes(text)));
  await page.waitForFunction(() => !document.querySelector("main").innerText.includes("Connecting"));
  await page.waitForFunction(() => !document.querySelector("main [aria-busy=true]"));
  await page.screenshot({ path: FILE, animations: "disabled" });
  console.log(FILE);
} finally {
  await browser.close();
  started.kill("SIGTERM");
  await once(started, "exit");
}
