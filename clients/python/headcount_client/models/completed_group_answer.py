from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="CompletedGroupAnswer")


@_attrs_define
class CompletedGroupAnswer:
    """The figures of a group.

    Attributes:
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        events (int): How many events in the range.
        group_key (str): Its key.
        group_type (str): Its type.
        last_seen (datetime.datetime):
        name (None | str): Its name; null if no event has reported it.
        users (int): How many different users in the range.
    """

    complete_from: datetime.date | None
    events: int
    group_key: str
    group_type: str
    last_seen: datetime.datetime
    name: None | str
    users: int

    def to_dict(self) -> dict[str, Any]:
        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

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
                "complete_from": complete_from,
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

        def _parse_complete_from(data: object) -> datetime.date | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                complete_from_type_0 = datetime.date.fromisoformat(data)

                return complete_from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.date | None, data)

        complete_from = _parse_complete_from(d.pop("complete_from"))

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

        completed_group_answer = cls(
            complete_from=complete_from,
            events=events,
            group_key=group_key,
            group_type=group_type,
            last_seen=last_seen,
            name=name,
            users=users,
        )

        return completed_group_answer
