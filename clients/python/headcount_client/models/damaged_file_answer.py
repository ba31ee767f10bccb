from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="DamagedFileAnswer")


@_attrs_define
class DamagedFileAnswer:
    """A file that is not what was written.

    Attributes:
        file (str): Its path in the data directory, or its address if it is an object that the nodes of a cluster share.
        reason (str): What is wrong with it.
        node (None | str | Unset): Where the node of a cluster answers that found it.
    """

    file: str
    reason: str
    node: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        file = self.file

        reason = self.reason

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "file": file,
                "reason": reason,
            }
        )
        if node is not UNSET:
            field_dict["node"] = node

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        file = d.pop("file")

        reason = d.pop("reason")

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        damaged_file_answer = cls(
            file=file,
            reason=reason,
            node=node,
        )

        return damaged_file_answer
