from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="DifferingCellAnswer")


@_attrs_define
class DifferingCellAnswer:
    """A cell whose stored value differs from the recomputed one.

    Attributes:
        key (str): The key. Its day comes first, if it has one.
        project_id (str): The project.
        rollup (str): The rollup, index or kind of record.
        node (None | str | Unset): Where the node of a cluster answers that has it.
        recomputed (None | str | Unset): The recomputed value; null if there should be none.
        stored (None | str | Unset): The stored value; null if there is none.
    """

    key: str
    project_id: str
    rollup: str
    node: None | str | Unset = UNSET
    recomputed: None | str | Unset = UNSET
    stored: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        key = self.key

        project_id = self.project_id

        rollup = self.rollup

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        recomputed: None | str | Unset
        if isinstance(self.recomputed, Unset):
            recomputed = UNSET
        else:
            recomputed = self.recomputed

        stored: None | str | Unset
        if isinstance(self.stored, Unset):
            stored = UNSET
        else:
            stored = self.stored

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "key": key,
                "project_id": project_id,
                "rollup": rollup,
            }
        )
        if node is not UNSET:
            field_dict["node"] = node
        if recomputed is not UNSET:
            field_dict["recomputed"] = recomputed
        if stored is not UNSET:
            field_dict["stored"] = stored

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        key = d.pop("key")

        project_id = d.pop("project_id")

        rollup = d.pop("rollup")

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        def _parse_recomputed(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        recomputed = _parse_recomputed(d.pop("recomputed", UNSET))

        def _parse_stored(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stored = _parse_stored(d.pop("stored", UNSET))

        differing_cell_answer = cls(
            key=key,
            project_id=project_id,
            rollup=rollup,
            node=node,
            recomputed=recomputed,
            stored=stored,
        )

        return differing_cell_answer
