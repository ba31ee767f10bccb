// Records the sales of a shop with the client, and prints what it is answered. `shop.py` does the same.

import { connect, type Schemas } from "headcount-client";

const { BASE_URL: baseUrl, TOKEN: token, PK: publicKey, PROJECT } = process.env as Record<string, string>;
const path = { project_id: PROJECT! };
const server = connect({ baseUrl: baseUrl!, token: token! });
const site = connect({ baseUrl: baseUrl!, publicKey: publicKey! });

const events: Schemas["EventShape"][] = [];
for (let number = 0; number < 250; number += 1) {
  const user_id = `user-${number % 40}`;
  events.push({ name: "order", user_id, value: 10.25, currency: "USD", external_id: `ts-order-${number}`, metadata: { plan: number % 5 ? "pro" : "free" } });
}
events.push({ name: "order".repeat(21), user_id: "user-1", value: 1 }, { name: "refund", user_id: "user-1", value: -5.5, external_id: "ts-refund" });

const batch = await server.POST("/projects/{project_id}/batch", { params: { path }, body: { events } });
const again = await server.POST("/projects/{project_id}/track", { params: { path }, body: events[0]! });
const page = await site.POST("/track", { body: { name: "pageview", user_id: "user-99", url: "https://shop.example/", timestamp: Date.now() } });
const users = await server.POST("/projects/{project_id}/analytics/count-unique-users-per-day", { params: { path }, body: {} });
const revenue = await server.GET("/projects/{project_id}/revenue/metrics", { params: { path } });
const plans = await server.POST("/projects/{project_id}/analytics/aggregate", {
  params: { path },
  body: { start_date: new Date(Date.now() - 86_400_000).toISOString(), metadata_field: "plan", event_name: "order" },
});
const unknown = await server.GET("/projects/{project_id}/revenue/metrics", { params: { path: { project_id: "prj_unknown" } } });
const refused = await connect({ baseUrl: baseUrl!, token: "sk_wrong" }).GET("/organization");

const totals: Record<string, number> = {};
for (const row of plans.data!.rows) totals[String(row.value)] = row.count;
console.log(JSON.stringify({
  recorded: batch.data!.recorded,
  errors: batch.data!.errors.map(({ index, code }) => [index, code]),
  again: again.data!.status,
  page: page.data!.status,
  users: users.data!.total_unique_users,
  revenue: revenue.data!.total_revenue,
  orders: revenue.data!.orders,
  plans: totals,
  unknown: [unknown.response.status, unknown.error?.error.code],
  refused: [refused.response.status, refused.error?.error.code],
}));
