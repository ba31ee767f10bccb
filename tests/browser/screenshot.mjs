// Takes the picture of README.md: the overview of `headcount demo`, in chromium.
//
// usage: node screenshot.mjs [FILE]

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.js";

const PROGRAM = process.env.HEADCOUNT ?? fileURLToPath(new URL("../../target/debug/headcount", import.meta.url));
const FILE = process.argv[2] ?? fileURLToPath(new URL("../../docs/overview.png", import.meta.url));
const SIZE = { width: 1400, height: 976 };
const PATIENCE_MS = 60_000;

/** Starts the demo, which stops by itself. Returns its process, and the link that it prints. */
async function demo() {
  const started = spawn(PROGRAM, ["demo", "--for", "5m", "--listen", "127.0.0.1:0", "--log", "warn"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: started.stdout })) {
    if (line.includes("/#code=")) return { started, link: line.trim() };
  }
  throw new Error("the demo printed no link");
}

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
