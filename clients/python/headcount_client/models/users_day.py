from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="UsersDay")


@_attrs_define
class UsersDay:
    """One day's unique users.

    Attributes:
        day (str): The day, `YYYY-MM-DD`.
        unique_users (int): How many different users were active.
    """

    day: str
    unique_users: int

    def to_dict(self) -> dict[str, Any]:
        day = self.day

        unique_users = self.unique_users

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "day": day,
                "unique_users": unique_users,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        day = d.pop("day")

        unique_users = d.pop("unique_users")

        users_day = cls(
            day=day,
            unique_users=unique_users,
        )

        return users_day
