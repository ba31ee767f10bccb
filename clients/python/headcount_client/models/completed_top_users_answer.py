from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.user_row import UserRow


T = TypeVar("T", bound="CompletedTopUsersAnswer")


@_attrs_define
class CompletedTopUsersAnswer:
    """A company's most active identified users.

    Attributes:
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        truncated (bool): Whether there are more.
        users (list[UserRow]): Those with events in the range, the most active first.
    """

    complete_from: datetime.date | None
    truncated: bool
    users: list[UserRow]

    def to_dict(self) -> dict[str, Any]:
        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        truncated = self.truncated

        users = []
        for users_item_data in self.users:
            users_item = users_item_data.to_dict()
            users.append(users_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "complete_from": complete_from,
                "truncated": truncated,
                "users": users,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.user_row import UserRow

        d = dict(src_dict)

        def _parse_complete_from(data: object) -> datetime.date | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                complete_from_type_0 = datetime.date.fromisoformat(data)

                return complete_from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.date | None, data)

        complete_from = _parse_complete_from(d.pop("complete_from"))

        truncated = d.pop("truncated")

        users = []
        _users = d.pop("users")
        for users_item_data in _users:
            users_item = UserRow.from_dict(users_item_data)

            users.append(users_item)

        completed_top_users_answer = cls(
            complete_from=complete_from,
            truncated=truncated,
            users=users,
        )

        return completed_top_users_answer
