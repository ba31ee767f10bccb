from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ReferrerCount")


@_attrs_define
class ReferrerCount:
    """The events from one referrer.

    Attributes:
        count (int): How many events.
        referrer (str): The host, without `www.`.
    """

    count: int
    referrer: str

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        referrer = self.referrer

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "count": count,
                "referrer": referrer,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        count = d.pop("count")

        referrer = d.pop("referrer")

        referrer_count = cls(
            count=count,
            referrer=referrer,
        )

        return referrer_count
