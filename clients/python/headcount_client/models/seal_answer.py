from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="SealAnswer")


@_attrs_define
class SealAnswer:
    """What was sealed.

    Attributes:
        events (int): The number of events that were added to the archive.
        sealed_until (int): The position up to which all events are in the archive, except those of `waiting_projects`.
        waiting_projects (list[str]): The projects whose events stay in the log, because their list of archive files is
            damaged.
    """

    events: int
    sealed_until: int
    waiting_projects: list[str]

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        sealed_until = self.sealed_until

        waiting_projects = self.waiting_projects

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "events": events,
                "sealed_until": sealed_until,
                "waiting_projects": waiting_projects,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        events = d.pop("events")

        sealed_until = d.pop("sealed_until")

        waiting_projects = cast(list[str], d.pop("waiting_projects"))

        seal_answer = cls(
            events=events,
            sealed_until=sealed_until,
            waiting_projects=waiting_projects,
        )

        return seal_answer
