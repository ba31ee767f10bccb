from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.webhook_patch_shape_events_item import WebhookPatchShapeEventsItem
from ..models.webhook_patch_shape_status import WebhookPatchShapeStatus
from ..types import UNSET, Unset

T = TypeVar("T", bound="WebhookPatchShape")


@_attrs_define
class WebhookPatchShape:
    """A change of a webhook: absent fields stay unchanged.

    Example:
        {'status': 'paused'}

    Attributes:
        events (list[WebhookPatchShapeEventsItem] | Unset): What it sends: `notification`, an event with `notify: true`.
        status (WebhookPatchShapeStatus | Unset): `active`: it sends; `paused`: it waits, and later sends what came
            meanwhile.
        url (None | str | Unset): The new URL.
    """

    events: list[WebhookPatchShapeEventsItem] | Unset = UNSET
    status: WebhookPatchShapeStatus | Unset = UNSET
    url: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        events: list[str] | Unset = UNSET
        if not isinstance(self.events, Unset):
            events = []
            for events_item_data in self.events:
                events_item = events_item_data.value
                events.append(events_item)

        status: str | Unset = UNSET
        if not isinstance(self.status, Unset):
            status = self.status.value

        url: None | str | Unset
        if isinstance(self.url, Unset):
            url = UNSET
        else:
            url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if events is not UNSET:
            field_dict["events"] = events
        if status is not UNSET:
            field_dict["status"] = status
        if url is not UNSET:
            field_dict["url"] = url

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        _events = d.pop("events", UNSET)
        events: list[WebhookPatchShapeEventsItem] | Unset = UNSET
        if _events is not UNSET:
            events = []
            for events_item_data in _events:
                events_item = WebhookPatchShapeEventsItem(events_item_data)

                events.append(events_item)

        _status = d.pop("status", UNSET)
        status: WebhookPatchShapeStatus | Unset
        if isinstance(_status, Unset):
            status = UNSET
        else:
            status = WebhookPatchShapeStatus(_status)

        def _parse_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        url = _parse_url(d.pop("url", UNSET))

        webhook_patch_shape = cls(
            events=events,
            status=status,
            url=url,
        )

        return webhook_patch_shape
