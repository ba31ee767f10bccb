from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.field_row import FieldRow


T = TypeVar("T", bound="FieldsAnswer")


@_attrs_define
class FieldsAnswer:
    """The fields in the metadata of events.

    Attributes:
        fields (list[FieldRow]): Those of the most events first.
        truncated (bool): Whether there are more.
    """

    fields: list[FieldRow]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        fields = []
        for fields_item_data in self.fields:
            fields_item = fields_item_data.to_dict()
            fields.append(fields_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "fields": fields,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.field_row import FieldRow

        d = dict(src_dict)
        fields = []
        _fields = d.pop("fields")
        for fields_item_data in _fields:
            fields_item = FieldRow.from_dict(fields_item_data)

            fields.append(fields_item)

        truncated = d.pop("truncated")

        fields_answer = cls(
            fields=fields,
            truncated=truncated,
        )

        return fields_answer
