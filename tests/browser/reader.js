// Somebody who is signed in, and what their pages were refused.

import { pause } from "./browser.js";

const PATIENCE_MS = 30_000;

export class Reader {
  static async signIn(browser, server) {
    const reader = new Reader();
    reader.server = server;
    const context = await browser.newContext({ viewport: { width: 1280, height: 2_400 }, locale: "en-US", timezoneId: "UTC", reducedMotion: "reduce" });
    context.setDefaultTimeout(PATIENCE_MS);
    reader.page = await context.newPage();
    reader.refused = [];
    reader.page.on("response", (response) => response.status() >= 400 && reader.refused.push(`${response.status()} ${response.url()} ${response.request().postData() ?? ""}`));
    reader.page.on("pageerror", (error) => reader.refused.push(String(error)));
    await reader.page.goto(server.url);
    await reader.page.getByLabel("Sign-in code or API token").fill(server.initial.api_token);
    await reader.page.getByRole("button", { name: "Sign in" }).click();
    await reader.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    // Whoever isn't signed in is told so.
    reader.refused = reader.refused.filter((one) => !one.startsWith("401"));
    return reader;
  }

  /** Opens a page of the project, and waits for its figures. */
  async open(path, project = this.server.initial.project_id) {
    await this.page.goto(`${this.server.url}/ui/${project}/${path}`);
    await this.settled();
  }

  async settled() {
    await this.page.locator("main h1").waitFor();
    await pause(150);
    await this.page.waitForFunction(() => !document.querySelector('[aria-label="Loading"], main [aria-busy=true]'));
  }

  text() {
    return this.page.locator("main").innerText();
  }

  figure(id) {
    return this.page.locator(`[data-figure="${id}"]`).innerText();
  }

  /** What stands below a figure. */
  change(id) {
    return this.page.locator(`[data-figure="${id}"] + div`).innerText();
  }

  card(title) {
    return this.page.getByRole("region", { name: title, exact: true }).first();
  }
}
