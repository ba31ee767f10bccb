from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="PreviousWindow")


@_attrs_define
class PreviousWindow:
    """The window that is compared with.

    Attributes:
        end_date (str): The last day.
        start_date (str): The first day.
    """

    end_date: str
    start_date: str

    def to_dict(self) -> dict[str, Any]:
        end_date = self.end_date

        start_date = self.start_date

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "end_date": end_date,
                "start_date": start_date,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        end_date = d.pop("end_date")

        start_date = d.pop("start_date")

        previous_window = cls(
            end_date=end_date,
            start_date=start_date,
        )

        return previous_window
