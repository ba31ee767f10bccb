from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="GroupRow")


@_attrs_define
class GroupRow:
    """One group.

    Attributes:
        count (int): The number of events.
        value (bool | float | None | str):
        summed (int | Unset): The number of events that have a number; only if sums were asked for.
        total (float | None | Unset):
    """

    count: int
    value: bool | float | None | str
    summed: int | Unset = UNSET
    total: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        value: bool | float | None | str
        value = self.value

        summed = self.summed

        total: float | None | Unset
        if isinstance(self.total, Unset):
            total = UNSET
        else:
            total = self.total

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "count": count,
                "value": value,
            }
        )
        if summed is not UNSET:
            field_dict["summed"] = summed
        if total is not UNSET:
            field_dict["total"] = total

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        count = d.pop("count")

        def _parse_value(data: object) -> bool | float | None | str:
            if data is None:
                return data
            return cast(bool | float | None | str, data)

        value = _parse_value(d.pop("value"))

        summed = d.pop("summed", UNSET)

        def _parse_total(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        total = _parse_total(d.pop("total", UNSET))

        group_row = cls(
            count=count,
            value=value,
            summed=summed,
            total=total,
        )

        return group_row
