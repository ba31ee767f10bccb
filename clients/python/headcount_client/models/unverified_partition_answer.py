from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="UnverifiedPartitionAnswer")


@_attrs_define
class UnverifiedPartitionAnswer:
    """A partition of a cluster of which not everything was verified.

    Attributes:
        partition (int): The number of the partition.
        reason (str): Why it was not.
        node (None | str | Unset): Where the node answers that should have done it; absent if no node had the partition.
    """

    partition: int
    reason: str
    node: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        partition = self.partition

        reason = self.reason

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "partition": partition,
                "reason": reason,
            }
        )
        if node is not UNSET:
            field_dict["node"] = node

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        partition = d.pop("partition")

        reason = d.pop("reason")

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        unverified_partition_answer = cls(
            partition=partition,
            reason=reason,
            node=node,
        )

        return unverified_partition_answer
