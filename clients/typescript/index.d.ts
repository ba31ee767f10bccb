import type { Client, ClientOptions } from "./openapi-fetch/index.js";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";

/** The types of bodies and answers, by their names in the document: `Schemas["EventShape"]`. */
export type Schemas = components["schemas"];

export interface Options extends ClientOptions {
  /** The address of the server, such as `https://stats.example.com`. */
  baseUrl: string;
  /** An API token (`sk_…`), for questions, management, and events that a server sends. A secret: never in a web page. */
  token?: string;
  /** A public key (`pk_…`), which can only record events. */
  publicKey?: string;
}

/**
 * Returns a client of one server. Its methods `GET`, `POST`, `PATCH` and `DELETE` take a path of the document, and return `{ data, error, response }`: `data` of
 * a 2xx, `error` of any other answer. They throw only if there is no answer.
 */
export function connect(options: Options): Client<paths>;
