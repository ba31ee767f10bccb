from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.group_row import GroupRow


T = TypeVar("T", bound="AggregateAnswer")


@_attrs_define
class AggregateAnswer:
    """Events by the values of a property.

    Attributes:
        end_date (str): The last day.
        rows (list[GroupRow]): The groups: by `total` if sums were asked for, else by `count`, descending. Among equals,
            null is last.
        start_date (str): The first day.
        timezone (str): The timezone of the days.
        total_groups (int): The number of all groups, the null group included.
        truncated (bool): Whether there are more groups than rows.
    """

    end_date: str
    rows: list[GroupRow]
    start_date: str
    timezone: str
    total_groups: int
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        end_date = self.end_date

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        start_date = self.start_date

        timezone = self.timezone

        total_groups = self.total_groups

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "end_date": end_date,
                "rows": rows,
                "start_date": start_date,
                "timezone": timezone,
                "total_groups": total_groups,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.group_row import GroupRow

        d = dict(src_dict)
        end_date = d.pop("end_date")

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = GroupRow.from_dict(rows_item_data)

            rows.append(rows_item)

        start_date = d.pop("start_date")

        timezone = d.pop("timezone")

        total_groups = d.pop("total_groups")

        truncated = d.pop("truncated")

        aggregate_answer = cls(
            end_date=end_date,
            rows=rows,
            start_date=start_date,
            timezone=timezone,
            total_groups=total_groups,
            truncated=truncated,
        )

        return aggregate_answer
