// Stands between an SDK and the server: passes everything on, and remembers the requests.

import { once } from "node:events";
import { Agent, createServer, request } from "node:http";

export class Recorder {
  /** Method, path, headers and body of each request, and the status that it got. */
  requests = [];

  static async start(server) {
    const recorder = new Recorder();
    const agent = new Agent({ keepAlive: true });
    recorder.server = createServer((asked, answer) => recorder.pass(asked, answer, server.port, agent)).listen(0, "127.0.0.1");
    await once(recorder.server, "listening");
    recorder.port = recorder.server.address().port;
    return recorder;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The requests of a method to a path. */
  of(method, path) {
    return this.requests.filter((request) => request.method === method && path.test(request.path));
  }

  async pass(asked, answer, port, agent) {
    const chunks = [];
    try {
      for await (const chunk of asked) chunks.push(chunk);
    } catch {
      return;
    }
    const known = { method: asked.method, path: asked.url, headers: asked.headers, body: Buffer.concat(chunks).toString() };
    this.requests.push(known);
    const options = { host: "127.0.0.1", port, method: asked.method, path: asked.url, headers: asked.headers, agent };
    const passed = request(options, (of) => {
      known.status = of.statusCode;
      answer.writeHead(of.statusCode, of.headers);
      of.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    passed.end(Buffer.concat(chunks));
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}
