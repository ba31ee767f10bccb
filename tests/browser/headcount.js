// A real server in a process of its own, on an empty data directory.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = process.env.HEADCOUNT ?? fileURLToPath(new URL("../../target/debug/headcount", import.meta.url));
const SETTINGS = ["--shards=1", "--workers=1", "--min-free-bytes=0", "--log=warn"];
const PATIENCE_MS = 30_000;

/** Starts the demo, which stops by itself. Returns its process, and the link that it prints. */
export async function demo() {
  const started = spawn(PROGRAM, ["demo", "--for", "5m", "--listen", "127.0.0.1:0", "--log", "warn"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: started.stdout })) {
    if (line.includes("/#code=")) return { started, link: line.trim() };
  }
  throw new Error("the demo printed no link");
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

export class Headcount {
  static async start(...settings) {
    const server = new Headcount();
    server.dir = mkdtempSync(join(tmpdir(), "headcount-browser-"));
    server.initial = JSON.parse(execFileSync(PROGRAM, ["init", "--json", "--data-dir", server.dir], { encoding: "utf8" }));
    server.port = await freePort();
    server.settings = settings;
    await server.serve();
    return server;
  }

  async serve() {
    const { dir, port, settings } = this;
    const flags = ["serve", "--data-dir", dir, "--listen", `127.0.0.1:${port}`, ...SETTINGS, ...settings];
    this.process = spawn(PROGRAM, flags, { stdio: ["ignore", "ignore", "inherit"] });
    this.ended = once(this.process, "exit");
    const end = Date.now() + PATIENCE_MS;
    while (!(await fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false))) {
      if (Date.now() > end || this.process.exitCode !== null) throw new Error("the server does not start");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get key() {
    return this.initial.public_key;
  }

  /** Ends it without warning. */
  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill("SIGTERM");
    await this.ended;
    rmSync(this.dir, { recursive: true, force: true });
  }

  async ask(path, body) {
    const headers = { authorization: `Bearer ${this.initial.api_token}`, "content-type": "application/json" };
    const method = body ? "POST" : "GET";
    const answer = await fetch(`${this.url}/projects/${this.initial.project_id}${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  /** A question about the organization. */
  async get(path) {
    return this.manage("GET", path);
  }

  async manage(method, path, body, token = this.initial.api_token) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${this.url}${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.status === 204 ? null : answer.json();
  }

  /** Every recorded event. */
  async events() {
    const lines = await (await this.ask("/export?format=ndjson")).text();
    return lines.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }
}
