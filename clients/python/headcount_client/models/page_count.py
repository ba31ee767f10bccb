from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="PageCount")


@_attrs_define
class PageCount:
    """The pageviews of one page.

    Attributes:
        count (int): How many pageviews.
        url (str): The page, without query and fragment.
    """

    count: int
    url: str

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "count": count,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        count = d.pop("count")

        url = d.pop("url")

        page_count = cls(
            count=count,
            url=url,
        )

        return page_count
