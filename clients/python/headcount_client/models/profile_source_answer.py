from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="ProfileSourceAnswer")


@_attrs_define
class ProfileSourceAnswer:
    """A page that was fetched for a profile.

    Attributes:
        error (None | str): What went wrong; null for nothing.
        fetched_at (datetime.datetime):
        status (int | None): The status of the answer; null if there was none.
        url (str): Its URL.
    """

    error: None | str
    fetched_at: datetime.datetime
    status: int | None
    url: str

    def to_dict(self) -> dict[str, Any]:
        error: None | str
        error = self.error

        fetched_at = self.fetched_at.isoformat()

        status: int | None
        status = self.status

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "error": error,
                "fetched_at": fetched_at,
                "status": status,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_error(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        error = _parse_error(d.pop("error"))

        fetched_at = datetime.datetime.fromisoformat(d.pop("fetched_at"))

        def _parse_status(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        status = _parse_status(d.pop("status"))

        url = d.pop("url")

        profile_source_answer = cls(
            error=error,
            fetched_at=fetched_at,
            status=status,
            url=url,
        )

        return profile_source_answer
