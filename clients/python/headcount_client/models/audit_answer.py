from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.audit_row import AuditRow


T = TypeVar("T", bound="AuditAnswer")


@_attrs_define
class AuditAnswer:
    """A part of the audit log.

    Attributes:
        entries (list[AuditRow]): The entries, newest first.
        truncated (bool): Whether older ones follow.
    """

    entries: list[AuditRow]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        entries = []
        for entries_item_data in self.entries:
            entries_item = entries_item_data.to_dict()
            entries.append(entries_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "entries": entries,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.audit_row import AuditRow

        d = dict(src_dict)
        entries = []
        _entries = d.pop("entries")
        for entries_item_data in _entries:
            entries_item = AuditRow.from_dict(entries_item_data)

            entries.append(entries_item)

        truncated = d.pop("truncated")

        audit_answer = cls(
            entries=entries,
            truncated=truncated,
        )

        return audit_answer
