from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ClockConfirmation")


@_attrs_define
class ClockConfirmation:
    """A confirmation that the clock is right.

    Example:
        {'today': '2026-11-29'}

    Attributes:
        today (datetime.date): Which day it is, in any timezone. It must be the day that the clock shows.
    """

    today: datetime.date

    def to_dict(self) -> dict[str, Any]:
        today = self.today.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "today": today,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        today = datetime.date.fromisoformat(d.pop("today"))

        clock_confirmation = cls(
            today=today,
        )

        return clock_confirmation
