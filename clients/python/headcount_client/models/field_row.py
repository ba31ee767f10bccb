from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="FieldRow")


@_attrs_define
class FieldRow:
    """A field in the metadata of events.

    Attributes:
        events (int): How many events have it.
        field (str): Its name in filters: `metadata.` and its path.
        types (list[str]): The types of its values: those of `boolean`, `number` and `text` that occur, in this order.
    """

    events: int
    field: str
    types: list[str]

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        field = self.field

        types = self.types

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "events": events,
                "field": field,
                "types": types,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        events = d.pop("events")

        field = d.pop("field")

        types = cast(list[str], d.pop("types"))

        field_row = cls(
            events=events,
            field=field,
            types=types,
        )

        return field_row
