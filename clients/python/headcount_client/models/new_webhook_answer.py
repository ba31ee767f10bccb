from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..models.new_webhook_answer_events_item import NewWebhookAnswerEventsItem
from ..models.new_webhook_answer_status import NewWebhookAnswerStatus

T = TypeVar("T", bound="NewWebhookAnswer")


@_attrs_define
class NewWebhookAnswer:
    """A webhook that was made.

    Attributes:
        created_at (datetime.datetime):
        events (list[NewWebhookAnswerEventsItem]): What it sends: `notification`, an event with `notify: true`.
        id (str): The webhook's id.
        project_id (str): The project whose notifications are sent.
        secret (str): The secret that signs: shown this once. The header `headcount-signature: t=<seconds>,v1=<hex>` has
            the HMAC-SHA256 of `<t>.<body>`, with
            the whole secret as key.
        status (NewWebhookAnswerStatus): `active`: it sends; `paused`: it waits, and later sends what came meanwhile.
        url (str): Where they are sent.
    """

    created_at: datetime.datetime
    events: list[NewWebhookAnswerEventsItem]
    id: str
    project_id: str
    secret: str
    status: NewWebhookAnswerStatus
    url: str

    def to_dict(self) -> dict[str, Any]:
        created_at = self.created_at.isoformat()

        events = []
        for events_item_data in self.events:
            events_item = events_item_data.value
            events.append(events_item)

        id = self.id

        project_id = self.project_id

        secret = self.secret

        status = self.status.value

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "created_at": created_at,
                "events": events,
                "id": id,
                "project_id": project_id,
                "secret": secret,
                "status": status,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = NewWebhookAnswerEventsItem(events_item_data)

            events.append(events_item)

        id = d.pop("id")

        project_id = d.pop("project_id")

        secret = d.pop("secret")

        status = NewWebhookAnswerStatus(d.pop("status"))

        url = d.pop("url")

        new_webhook_answer = cls(
            created_at=created_at,
            events=events,
            id=id,
            project_id=project_id,
            secret=secret,
            status=status,
            url=url,
        )

        return new_webhook_answer
