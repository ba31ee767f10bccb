from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="GroupAnswer")


@_attrs_define
class GroupAnswer:
    """The figures of a group.

    Attributes:
        events (int): How many events in the range.
        group_key (str): Its key.
        group_type (str): Its type.
        last_seen (datetime.datetime):
        name (None | str): Its name; null if no event has reported it.
        users (int): How many different users in the range.
    """

    events: int
    group_key: str
    group_type: str
    last_seen: datetime.datetime
    name: None | str
    users: int

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        group_key = self.group_key

        group_type = self.group_type

        last_seen = self.last_seen.isoformat()

        name: None | str
        name = self.name

        users = self.users

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "events": events,
                "group_key": group_key,
                "group_type": group_type,
                "last_seen": last_seen,
                "name": name,
                "users": users,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        events = d.pop("events")

        group_key = d.pop("group_key")

        group_type = d.pop("group_type")

        last_seen = datetime.datetime.fromisoformat(d.pop("last_seen"))

        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))

        users = d.pop("users")

        group_answer = cls(
            events=events,
            group_key=group_key,
            group_type=group_type,
            last_seen=last_seen,
            name=name,
            users=users,
        )

        return group_answer
