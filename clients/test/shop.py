"""Records the sales of a shop with the client, and prints what it is answered. `shop.ts` does the same."""

import json
import os
from datetime import UTC, datetime, timedelta

from headcount_client import AuthenticatedClient, Client
from headcount_client.api.analytics import aggregate, count_unique_users_per_day
from headcount_client.api.events import server_batch, server_track, track
from headcount_client.api.management import get_organization
from headcount_client.api.revenue import revenue_metrics
from headcount_client.models import AggregateQuestion, BatchShape, EventShape, UniqueUsersQuestion

BASE_URL, TOKEN, PK, PROJECT = (os.environ[name] for name in ("BASE_URL", "TOKEN", "PK", "PROJECT"))
server = AuthenticatedClient(base_url=BASE_URL, token=TOKEN)
site = Client(base_url=BASE_URL, headers={"x-service-pk": PK})

events = []
for number in range(250):
    plan = {"plan": "pro" if number % 5 else "free"}
    order = EventShape("order", user_id=f"user-{number % 40}", value=10.25, currency="USD", external_id=f"py-order-{number}", metadata=plan)
    events.append(order)
events += [EventShape("order" * 21, user_id="user-1", value=1), EventShape("refund", user_id="user-1", value=-5.5, external_id="py-refund")]

batch = server_batch.sync(PROJECT, client=server, body=BatchShape(events))
again = server_track.sync(PROJECT, client=server, body=events[0])
now = datetime.now(UTC)
page = track.sync(client=site, body=EventShape("pageview", user_id="user-99", url="https://shop.example/", timestamp=now))
users = count_unique_users_per_day.sync(PROJECT, client=server, body=UniqueUsersQuestion())
revenue = revenue_metrics.sync(PROJECT, client=server)
question = AggregateQuestion(start_date=(now - timedelta(days=1)).isoformat(), metadata_field="plan", event_name="order")
plans = aggregate.sync(PROJECT, client=server, body=question)
unknown = revenue_metrics.sync_detailed("prj_unknown", client=server)
refused = get_organization.sync_detailed(client=AuthenticatedClient(base_url=BASE_URL, token="sk_wrong"))

print(json.dumps({
    "recorded": batch.recorded,
    "errors": [[error.index, error.code] for error in batch.errors],
    "again": again.status,
    "page": page.status,
    "users": users.total_unique_users,
    "revenue": revenue.total_revenue,
    "orders": revenue.orders,
    "plans": {str(row.value): row.count for row in plans.rows},
    "unknown": [unknown.status_code, unknown.parsed.error.code],
    "refused": [refused.status_code, refused.parsed.error.code],
}))
