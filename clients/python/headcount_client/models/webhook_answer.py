from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..models.webhook_answer_events_item import WebhookAnswerEventsItem
from ..models.webhook_answer_status import WebhookAnswerStatus

T = TypeVar("T", bound="WebhookAnswer")


@_attrs_define
class WebhookAnswer:
    """A webhook.

    Attributes:
        created_at (datetime.datetime):
        events (list[WebhookAnswerEventsItem]): What it sends: `notification`, an event with `notify: true`.
        id (str): The webhook's id.
        project_id (str): The project whose notifications are sent.
        status (WebhookAnswerStatus): `active`: it sends; `paused`: it waits, and later sends what came meanwhile.
        url (str): Where they are sent.
    """

    created_at: datetime.datetime
    events: list[WebhookAnswerEventsItem]
    id: str
    project_id: str
    status: WebhookAnswerStatus
    url: str

    def to_dict(self) -> dict[str, Any]:
        created_at = self.created_at.isoformat()

        events = []
        for events_item_data in self.events:
            events_item = events_item_data.value
            events.append(events_item)

        id = self.id

        project_id = self.project_id

        status = self.status.value

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "created_at": created_at,
                "events": events,
                "id": id,
                "project_id": project_id,
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
            events_item = WebhookAnswerEventsItem(events_item_data)

            events.append(events_item)

        id = d.pop("id")

        project_id = d.pop("project_id")

        status = WebhookAnswerStatus(d.pop("status"))

        url = d.pop("url")

        webhook_answer = cls(
            created_at=created_at,
            events=events,
            id=id,
            project_id=project_id,
            status=status,
            url=url,
        )

        return webhook_answer
