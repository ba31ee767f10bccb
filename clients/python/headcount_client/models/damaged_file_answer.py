from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="DamagedFileAnswer")


@_attrs_define
class DamagedFileAnswer:
    """A file that is not what was written.

    Attributes:
        file (str): Its path in the data directory.
        reason (str): What is wrong with it.
    """

    file: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        file = self.file

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "file": file,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        file = d.pop("file")

        reason = d.pop("reason")

        damaged_file_answer = cls(
            file=file,
            reason=reason,
        )

        return damaged_file_answer
