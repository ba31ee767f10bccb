// Stands between the pages and the server: passes everything on, remembers the events, and fails when it is told to.

import { Agent, createServer, request } from "node:http";
import { once } from "node:events";

export class Gate {
  /** Returns what happens to an event: `undefined` (it is passed on), a status, "refuse", or "lose" (its answer is lost). */
  fault = () => undefined;
  /** Every attempt to send an event, as it was sent, with what was answered. */
  attempts = [];
  preflights = 0;

  static async start(port) {
    const gate = new Gate();
    const agent = new Agent({ keepAlive: true });
    gate.upstream = port;
    gate.server = createServer((asked, answer) => gate.handle(asked, answer, agent)).listen(0, "127.0.0.1");
    await once(gate.server, "listening");
    gate.origin = `http://stats.test:${gate.server.address().port}`;
    return gate;
  }

  /** The events that the server recorded. */
  get recorded() {
    return this.attempts.filter(({ status, answer }) => status === 202 && !JSON.parse(answer).duplicate).map(({ event }) => event);
  }

  clear() {
    this.attempts = [];
    this.fault = () => undefined;
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }

  async handle(asked, answer, agent) {
    const chunks = [];
    try {
      for await (const chunk of asked) chunks.push(chunk);
    } catch {
      return;
    }
    const body = Buffer.concat(chunks);
    if (asked.method === "OPTIONS") this.preflights += 1;
    const attempt = asked.method === "POST" ? { event: JSON.parse(body), headers: asked.headers, url: asked.url, at: Date.now() } : {};
    if (attempt.event) this.attempts.push(attempt);
    const fault = attempt.event && this.fault(attempt.event);
    if (fault === "refuse") return answer.destroy();
    if (typeof fault === "number") {
      attempt.status = fault;
      return answer.writeHead(fault, { "access-control-allow-origin": "*" }).end();
    }
    const options = { port: this.upstream, host: "127.0.0.1", method: asked.method, path: asked.url, headers: asked.headers, agent };
    const passed = request(options, async (of) => {
      const content = [];
      try {
        for await (const chunk of of) content.push(chunk);
      } catch {
        return answer.destroy();
      }
      if (fault === "lose") return answer.destroy();
      attempt.answer = attempt.event && Buffer.concat(content).toString();
      attempt.status = of.statusCode;
      answer.writeHead(of.statusCode, of.headers).end(Buffer.concat(content));
    });
    passed.on("error", () => answer.destroy());
    passed.end(body);
  }
}
