from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CompareShapeType1")


@_attrs_define
class CompareShapeType1:
    """
    Attributes:
        end_date (datetime.date): The last day.
        start_date (datetime.date): The first day.
    """

    end_date: datetime.date
    start_date: datetime.date

    def to_dict(self) -> dict[str, Any]:
        end_date = self.end_date.isoformat()

        start_date = self.start_date.isoformat()

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
        end_date = datetime.date.fromisoformat(d.pop("end_date"))

        start_date = datetime.date.fromisoformat(d.pop("start_date"))

        compare_shape_type_1 = cls(
            end_date=end_date,
            start_date=start_date,
        )

        return compare_shape_type_1
