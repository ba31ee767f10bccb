from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="CohortOfUsers")


@_attrs_define
class CohortOfUsers:
    """The users who were first seen in one interval.

    Attributes:
        cohort (str): The Monday of the week, `YYYY-MM-DD`, or the month, `YYYY-MM`.
        returned (list[int]): How many of them were active in each interval, from that of the cohort to the running one,
            which is not over.
        users (int): How many users: those with a `user_id` or an `anonymous_id`. Cookieless visitors are new every day,
            and left out.
    """

    cohort: str
    returned: list[int]
    users: int

    def to_dict(self) -> dict[str, Any]:
        cohort = self.cohort

        returned = self.returned

        users = self.users

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cohort": cohort,
                "returned": returned,
                "users": users,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        cohort = d.pop("cohort")

        returned = cast(list[int], d.pop("returned"))

        users = d.pop("users")

        cohort_of_users = cls(
            cohort=cohort,
            returned=returned,
            users=users,
        )

        return cohort_of_users
