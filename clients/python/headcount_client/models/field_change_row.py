from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="FieldChangeRow")


@_attrs_define
class FieldChangeRow:
    """The value of a field before and after a change.

    Attributes:
        from_ (Any): Before; null if there was none.
        to (Any): After; null if there is none.
    """

    from_: Any
    to: Any

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_

        to = self.to

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from": from_,
                "to": to,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        from_ = d.pop("from")

        to = d.pop("to")

        field_change_row = cls(
            from_=from_,
            to=to,
        )

        return field_change_row
