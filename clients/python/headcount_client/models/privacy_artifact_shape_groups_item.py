from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="PrivacyArtifactShapeGroupsItem")


@_attrs_define
class PrivacyArtifactShapeGroupsItem:
    """A group that events belong to.

    Attributes:
        events (int): How many of the events.
        group_key (str): Its key.
        group_type (str): Its type.
        name (None | str): Its name.
    """

    events: int
    group_key: str
    group_type: str
    name: None | str

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        group_key = self.group_key

        group_type = self.group_type

        name: None | str
        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "events": events,
                "group_key": group_key,
                "group_type": group_type,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        events = d.pop("events")

        group_key = d.pop("group_key")

        group_type = d.pop("group_type")

        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))

        privacy_artifact_shape_groups_item = cls(
            events=events,
            group_key=group_key,
            group_type=group_type,
            name=name,
        )

        return privacy_artifact_shape_groups_item
