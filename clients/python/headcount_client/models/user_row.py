from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="UserRow")


@_attrs_define
class UserRow:
    """One of a company's most active users.

    Attributes:
        events (int): How many events at this company in the range.
        identity_id (str): The identity, `id_…`.
        last_seen (datetime.datetime):
        resolved_identifier (str): The user's latest e-mail address, else the `user_id`.
    """

    events: int
    identity_id: str
    last_seen: datetime.datetime
    resolved_identifier: str

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        identity_id = self.identity_id

        last_seen = self.last_seen.isoformat()

        resolved_identifier = self.resolved_identifier

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "events": events,
                "identity_id": identity_id,
                "last_seen": last_seen,
                "resolved_identifier": resolved_identifier,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        events = d.pop("events")

        identity_id = d.pop("identity_id")

        last_seen = datetime.datetime.fromisoformat(d.pop("last_seen"))

        resolved_identifier = d.pop("resolved_identifier")

        user_row = cls(
            events=events,
            identity_id=identity_id,
            last_seen=last_seen,
            resolved_identifier=resolved_identifier,
        )

        return user_row
