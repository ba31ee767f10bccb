from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="KeyLimitShape")


@_attrs_define
class KeyLimitShape:
    """A change of a public key's rate limit: absent fields stay unchanged.

    Example:
        {'burst': 500, 'rate_limit': 100}

    Attributes:
        burst (int | None | Unset): How many may be sent at once after a pause, at least 1 where there is a limit.
            Default: as many as `rate_limit`.
        rate_limit (int | None | Unset): How many events a second may be sent with the key; 0: no limit, and no burst.
    """

    burst: int | None | Unset = UNSET
    rate_limit: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        burst: int | None | Unset
        if isinstance(self.burst, Unset):
            burst = UNSET
        else:
            burst = self.burst

        rate_limit: int | None | Unset
        if isinstance(self.rate_limit, Unset):
            rate_limit = UNSET
        else:
            rate_limit = self.rate_limit

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if burst is not UNSET:
            field_dict["burst"] = burst
        if rate_limit is not UNSET:
            field_dict["rate_limit"] = rate_limit

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_burst(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        burst = _parse_burst(d.pop("burst", UNSET))

        def _parse_rate_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        rate_limit = _parse_rate_limit(d.pop("rate_limit", UNSET))

        key_limit_shape = cls(
            burst=burst,
            rate_limit=rate_limit,
        )

        return key_limit_shape
