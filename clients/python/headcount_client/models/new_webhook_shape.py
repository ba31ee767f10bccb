from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..models.new_webhook_shape_events_item import NewWebhookShapeEventsItem
from ..types import UNSET, Unset

T = TypeVar("T", bound="NewWebhookShape")


@_attrs_define
class NewWebhookShape:
    """A new webhook.

    Example:
        {'events': ['notification'], 'project_id': 'prj_00000000001', 'url': 'https://hooks.example.com/headcount'}

    Attributes:
        project_id (str): The project whose notifications are sent.
        url (str): Where they are sent: an `http` or `https` URL. Only globally reachable addresses are connected to.
        events (list[NewWebhookShapeEventsItem] | Unset): What it sends: `notification`, an event with `notify: true`.
    """

    project_id: str
    url: str
    events: list[NewWebhookShapeEventsItem] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        project_id = self.project_id

        url = self.url

        events: list[str] | Unset = UNSET
        if not isinstance(self.events, Unset):
            events = []
            for events_item_data in self.events:
                events_item = events_item_data.value
                events.append(events_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "project_id": project_id,
                "url": url,
            }
        )
        if events is not UNSET:
            field_dict["events"] = events

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        project_id = d.pop("project_id")

        url = d.pop("url")

        _events = d.pop("events", UNSET)
        events: list[NewWebhookShapeEventsItem] | Unset = UNSET
        if _events is not UNSET:
            events = []
            for events_item_data in _events:
                events_item = NewWebhookShapeEventsItem(events_item_data)

                events.append(events_item)

        new_webhook_shape = cls(
            project_id=project_id,
            url=url,
            events=events,
        )

        return new_webhook_shape
