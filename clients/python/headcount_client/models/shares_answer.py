from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.share_answer import ShareAnswer


T = TypeVar("T", bound="SharesAnswer")


@_attrs_define
class SharesAnswer:
    """The shares of a project.

    Attributes:
        shares (list[ShareAnswer]): The shares, oldest first, those that have expired included.
        truncated (bool): Whether some are left out: never.
    """

    shares: list[ShareAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        shares = []
        for shares_item_data in self.shares:
            shares_item = shares_item_data.to_dict()
            shares.append(shares_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "shares": shares,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.share_answer import ShareAnswer

        d = dict(src_dict)
        shares = []
        _shares = d.pop("shares")
        for shares_item_data in _shares:
            shares_item = ShareAnswer.from_dict(shares_item_data)

            shares.append(shares_item)

        truncated = d.pop("truncated")

        shares_answer = cls(
            shares=shares,
            truncated=truncated,
        )

        return shares_answer
