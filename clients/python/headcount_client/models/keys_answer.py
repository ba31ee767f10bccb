from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.key_limit_answer import KeyLimitAnswer


T = TypeVar("T", bound="KeysAnswer")


@_attrs_define
class KeysAnswer:
    """The public keys of a project.

    Attributes:
        keys (list[KeyLimitAnswer]): The keys that are valid, oldest first.
        truncated (bool): Whether some are left out: never.
    """

    keys: list[KeyLimitAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        keys = []
        for keys_item_data in self.keys:
            keys_item = keys_item_data.to_dict()
            keys.append(keys_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "keys": keys,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.key_limit_answer import KeyLimitAnswer

        d = dict(src_dict)
        keys = []
        _keys = d.pop("keys")
        for keys_item_data in _keys:
            keys_item = KeyLimitAnswer.from_dict(keys_item_data)

            keys.append(keys_item)

        truncated = d.pop("truncated")

        keys_answer = cls(
            keys=keys,
            truncated=truncated,
        )

        return keys_answer
