from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="KeyLimitAnswer")


@_attrs_define
class KeyLimitAnswer:
    """A public key and its rate limit.

    Attributes:
        burst (int): How many may be sent at once after a pause; 0: no limit.
        public_key (str): The key.
        rate_limit (int): How many events a second may be sent with it; 0: no limit.
    """

    burst: int
    public_key: str
    rate_limit: int

    def to_dict(self) -> dict[str, Any]:
        burst = self.burst

        public_key = self.public_key

        rate_limit = self.rate_limit

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "burst": burst,
                "public_key": public_key,
                "rate_limit": rate_limit,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        burst = d.pop("burst")

        public_key = d.pop("public_key")

        rate_limit = d.pop("rate_limit")

        key_limit_answer = cls(
            burst=burst,
            public_key=public_key,
            rate_limit=rate_limit,
        )

        return key_limit_answer
