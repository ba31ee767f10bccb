from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..models.target_row_type import TargetRowType

T = TypeVar("T", bound="TargetRow")


@_attrs_define
class TargetRow:
    """What a change was made to.

    Attributes:
        id (str): Its id.
        type_ (TargetRowType): Its type.
    """

    id: str
    type_: TargetRowType

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "id": id,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = d.pop("id")

        type_ = TargetRowType(d.pop("type"))

        target_row = cls(
            id=id,
            type_=type_,
        )

        return target_row
