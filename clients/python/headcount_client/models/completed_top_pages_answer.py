from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.page_count import PageCount


T = TypeVar("T", bound="CompletedTopPagesAnswer")


@_attrs_define
class CompletedTopPagesAnswer:
    """The pages that a user viewed.

    Attributes:
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        identity_id (str): The identity, `id_…`.
        pages (list[PageCount]): The pages, the most viewed first.
        truncated (bool): Whether there are more.
    """

    complete_from: datetime.date | None
    identity_id: str
    pages: list[PageCount]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        identity_id = self.identity_id

        pages = []
        for pages_item_data in self.pages:
            pages_item = pages_item_data.to_dict()
            pages.append(pages_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "complete_from": complete_from,
                "identity_id": identity_id,
                "pages": pages,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.page_count import PageCount

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

        identity_id = d.pop("identity_id")

        pages = []
        _pages = d.pop("pages")
        for pages_item_data in _pages:
            pages_item = PageCount.from_dict(pages_item_data)

            pages.append(pages_item)

        truncated = d.pop("truncated")

        completed_top_pages_answer = cls(
            complete_from=complete_from,
            identity_id=identity_id,
            pages=pages,
            truncated=truncated,
        )

        return completed_top_pages_answer
