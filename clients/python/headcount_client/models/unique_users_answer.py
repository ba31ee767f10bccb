from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.users_day import UsersDay


T = TypeVar("T", bound="UniqueUsersAnswer")


@_attrs_define
class UniqueUsersAnswer:
    """Unique users per day.

    Attributes:
        end_date (str): The last day.
        series (list[UsersDay]): Every day of the window.
        start_date (str): The first day.
        timezone (str): The timezone of the days.
        total_unique_users (int): The distinct users of the whole window: a union, not a sum.
    """

    end_date: str
    series: list[UsersDay]
    start_date: str
    timezone: str
    total_unique_users: int

    def to_dict(self) -> dict[str, Any]:
        end_date = self.end_date

        series = []
        for series_item_data in self.series:
            series_item = series_item_data.to_dict()
            series.append(series_item)

        start_date = self.start_date

        timezone = self.timezone

        total_unique_users = self.total_unique_users

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "end_date": end_date,
                "series": series,
                "start_date": start_date,
                "timezone": timezone,
                "total_unique_users": total_unique_users,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.users_day import UsersDay

        d = dict(src_dict)
        end_date = d.pop("end_date")

        series = []
        _series = d.pop("series")
        for series_item_data in _series:
            series_item = UsersDay.from_dict(series_item_data)

            series.append(series_item)

        start_date = d.pop("start_date")

        timezone = d.pop("timezone")

        total_unique_users = d.pop("total_unique_users")

        unique_users_answer = cls(
            end_date=end_date,
            series=series,
            start_date=start_date,
            timezone=timezone,
            total_unique_users=total_unique_users,
        )

        return unique_users_answer
