from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="TokenPatchShape")


@_attrs_define
class TokenPatchShape:
    """A change of a token: absent fields stay unchanged.

    Example:
        {'burst': 50, 'rate_limit': 10}

    Attributes:
        burst (int | None | Unset): How many may be sent at once after a pause, at least 1 where there is a limit.
            Default: as many as `rate_limit`.
        name (None | str | Unset): Another name.
        rate_limit (int | None | Unset): How many requests a second may be sent with it; 0: no limit, and no burst.
    """

    burst: int | None | Unset = UNSET
    name: None | str | Unset = UNSET
    rate_limit: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        burst: int | None | Unset
        if isinstance(self.burst, Unset):
            burst = UNSET
        else:
            burst = self.burst

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        rate_limit: int | None | Unset
        if isinstance(self.rate_limit, Unset):
            rate_limit = UNSET
        else:
            rate_limit = self.rate_limit

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if burst is not UNSET:
            field_dict["burst"] = burst
        if name is not UNSET:
            field_dict["name"] = name
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

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_rate_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        rate_limit = _parse_rate_limit(d.pop("rate_limit", UNSET))

        token_patch_shape = cls(
            burst=burst,
            name=name,
            rate_limit=rate_limit,
        )

        return token_patch_shape
