from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SessionsRow")


@_attrs_define
class SessionsRow:
    """The sessions of one channel, source, medium or campaign.

    Attributes:
        bounce_rate (float):
        bounces (int): Sessions of exactly one event.
        sessions (int): How many sessions.
        value (str): The channel, source, medium or campaign of the session: of its first event with a source, else of
            its first.
    """

    bounce_rate: float
    bounces: int
    sessions: int
    value: str

    def to_dict(self) -> dict[str, Any]:
        bounce_rate = self.bounce_rate

        bounces = self.bounces

        sessions = self.sessions

        value = self.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "bounce_rate": bounce_rate,
                "bounces": bounces,
                "sessions": sessions,
                "value": value,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        bounce_rate = d.pop("bounce_rate")

        bounces = d.pop("bounces")

        sessions = d.pop("sessions")

        value = d.pop("value")

        sessions_row = cls(
            bounce_rate=bounce_rate,
            bounces=bounces,
            sessions=sessions,
            value=value,
        )

        return sessions_row
