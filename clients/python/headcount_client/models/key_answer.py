from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="KeyAnswer")


@_attrs_define
class KeyAnswer:
    """A new public key.

    Attributes:
        public_key (str): The new key.
        public_keys (list[str]): All keys of the project that are valid, oldest first.
    """

    public_key: str
    public_keys: list[str]

    def to_dict(self) -> dict[str, Any]:
        public_key = self.public_key

        public_keys = self.public_keys

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "public_key": public_key,
                "public_keys": public_keys,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        public_key = d.pop("public_key")

        public_keys = cast(list[str], d.pop("public_keys"))

        key_answer = cls(
            public_key=public_key,
            public_keys=public_keys,
        )

        return key_answer
