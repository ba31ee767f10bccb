// Installs each client from its directory, as a program would, and compares what it is answered with what it sent.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Headcount } from "../../tests/browser/headcount.js";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const TYPESCRIPT = path("../typescript");
// 250 orders of 10.25 by 40 users, in 250 / 5 of the free plan; a refund of 5.50; one more user with a pageview. A name of 105 characters is refused.
const EXPECTED = {
  recorded: 251,
  errors: [[250, "invalid_parameter"]],
  again: "duplicate",
  page: "recorded",
  users: 41,
  revenue: 250 * 10.25 - 5.5,
  orders: 250,
  plans: { pro: 200, free: 50 },
  unknown: [404, "not_found"],
  refused: [401, "invalid_credential"],
};

let server;
let dir;

before(async () => {
  server = await Headcount.start();
  dir = mkdtempSync(join(tmpdir(), "headcount-clients-"));
});

after(async () => {
  await server?.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function run(program, flags, options) {
  const ended = promisify(execFile)(program, flags, { cwd: dir, timeout: 120_000, ...options });
  // Compilers report errors there.
  return (await ended.catch((error) => assert.fail(`${error.message}\n${error.stdout}`))).stdout;
}

/** A project of its own, as variables of the environment. */
async function environment(name) {
  const { project_id, public_key } = await server.manage("POST", "/projects", { name });
  const variables = { BASE_URL: server.url, TOKEN: server.initial.api_token, PK: public_key, PROJECT: project_id, no_proxy: "127.0.0.1" };
  return { ...process.env, ...variables };
}

test("TypeScript: installed with npm, checked strictly, and counts are equal", async () => {
  writeFileSync(join(dir, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", TYPESCRIPT]);
  copyFileSync(path("shop.ts"), join(dir, "shop.ts"));
  const compiler = { target: "es2022", module: "nodenext", strict: true, noUncheckedIndexedAccess: true, types: ["node"] };
  const typeRoots = [join(TYPESCRIPT, "node_modules/@types")];
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...compiler, typeRoots }, files: ["shop.ts"] }));
  await run(join(TYPESCRIPT, "node_modules/.bin/tsc"), ["--project", "."]);
  const printed = await run(process.execPath, ["shop.js"], { env: await environment("typescript") });
  assert.deepEqual(JSON.parse(printed), EXPECTED);
});

test("Python: installed with pip, and counts are equal", async () => {
  await run("python3", ["-m", "venv", "venv"]);
  await run("venv/bin/pip", ["install", "--quiet", "--disable-pip-version-check", path("../python")]);
  const printed = await run("venv/bin/python", [path("shop.py")], { env: await environment("python") });
  assert.deepEqual(JSON.parse(printed), EXPECTED);
});
