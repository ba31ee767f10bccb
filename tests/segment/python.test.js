// Segment's SDK for Python, as it is published: only its host is set.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Headcount } from "../browser/headcount.js";
import { Recorder } from "./recorder.js";

const EVENTS = 250;
const VERSIONS = ["2.3.4", "2.4.0"];
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

let server;

before(async () => {
  server = await Headcount.start();
});

after(() => server?.stop());

/** Sends events with a version of the SDK. Returns the requests, and the errors that the SDK reports. */
async function send(version, key, events, gzip) {
  const recorder = await Recorder.start(server);
  const environment = { ...process.env, PYTHONPATH: path(`node_modules/.python/${version}`), no_proxy: "127.0.0.1" };
  const flags = [path("send.py"), recorder.url, key, events, gzip ? "gzip" : "plain"];
  try {
    const { stdout } = await promisify(execFile)("python3", flags, { env: environment, timeout: 30_000 });
    return { requests: recorder.requests, errors: JSON.parse(stdout) };
  } finally {
    recorder.stop();
  }
}

/** A project of its own. */
async function project() {
  const headers = { authorization: `Bearer ${server.initial.api_token}`, "content-type": "application/json" };
  const answer = await fetch(`${server.url}/projects`, { method: "POST", headers, body: JSON.stringify({ name: "python" }) });
  const { project_id, public_key } = await answer.json();
  const events = async () => {
    const export_ = await fetch(`${server.url}/projects/${project_id}/export?format=ndjson`, { headers });
    return (await export_.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  };
  return { key: public_key, events };
}

for (const version of VERSIONS) {
  for (const gzip of [false, true]) {
    test(`${EVENTS} events of ${version}${gzip ? " with gzip" : ""} are counted exactly`, async () => {
      const { key, events } = await project();
      const { requests, errors } = await send(version, key, EVENTS, gzip);
      assert.deepEqual([errors, new Set(requests.map(({ status }) => status))], [[], new Set([200])]);
      assert.ok(requests.every(({ headers }) => headers["content-encoding"] === (gzip ? "gzip" : undefined)));
      // The older one sends its key in the body only.
      assert.equal(requests.some(({ headers }) => headers.authorization), version !== "2.3.4");
      const recorded = await events();
      assert.equal(recorded.length, EVENTS);
      assert.equal(new Set(recorded.map(({ external_id }) => external_id)).size, EVENTS);
      assert.ok(recorded.every(({ browser }) => !browser));
      assert.equal(recorded.filter(({ name, user_id }) => name === "identify" && user_id === "ada").length, 1);
    });
  }

  test(`a wrong key is given up at once by ${version}`, async () => {
    const { requests, errors } = await send(version, "pk_00000000000000000000000000000000", 3, false);
    assert.deepEqual(requests.map(({ status }) => status), [401]);
    assert.deepEqual(errors, [["[Segment] invalid_credential: the public key is not known (401)", 3]]);
  });
}
