from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="UserRow")


@_attrs_define
class UserRow:
    """One of a company's most active users.

    Attributes:
        email (None | str): The latest e-mail address; null if it has none.
        events (int): How many events at this company in the range.
        identity_id (str): The identity, `id_…`.
        last_seen (datetime.datetime):
        resolved_identifier (str): The user's latest e-mail address, else the `user_id`.
        user_id (None | str): The `user_id`; null if it has none.
    """

    email: None | str
    events: int
    identity_id: str
    last_seen: datetime.datetime
    resolved_identifier: str
    user_id: None | str

    def to_dict(self) -> dict[str, Any]:
        email: None | str
        email = self.email

        events = self.events

        identity_id = self.identity_id

        last_seen = self.last_seen.isoformat()

        resolved_identifier = self.resolved_identifier

        user_id: None | str
        user_id = self.user_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "email": email,
                "events": events,
                "identity_id": identity_id,
                "last_seen": last_seen,
                "resolved_identifier": resolved_identifier,
                "user_id": user_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_email(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        email = _parse_email(d.pop("email"))

        events = d.pop("events")

        identity_id = d.pop("identity_id")

        last_seen = datetime.datetime.fromisoformat(d.pop("last_seen"))

        resolved_identifier = d.pop("resolved_identifier")

        def _parse_user_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        user_id = _parse_user_id(d.pop("user_id"))

        user_row = cls(
            email=email,
            events=events,
            identity_id=identity_id,
            last_seen=last_seen,
            resolved_identifier=resolved_identifier,
            user_id=user_id,
        )

        return user_row
