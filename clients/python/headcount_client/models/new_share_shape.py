from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="NewShareShape")


@_attrs_define
class NewShareShape:
    """A share to be made.

    Example:
        {'embed_origins': ['https://intranet.example'], 'expires_at': '2030-01-01T00:00:00Z', 'name': 'For investors',
            'revenue': True}

    Attributes:
        name (str): Its name.
        embed_origins (list[str] | None | Unset): The web origins whose pages may show it in a frame, at most 20.
            Default: none.
        expires_at (datetime.datetime | None | Unset): From when on it is refused; in the future. Default: never.
        revenue (bool | None | Unset): Whether it shows money. Default: false.
    """

    name: str
    embed_origins: list[str] | None | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET
    revenue: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        embed_origins: list[str] | None | Unset
        if isinstance(self.embed_origins, Unset):
            embed_origins = UNSET
        elif isinstance(self.embed_origins, list):
            embed_origins = self.embed_origins

        else:
            embed_origins = self.embed_origins

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        revenue: bool | None | Unset
        if isinstance(self.revenue, Unset):
            revenue = UNSET
        else:
            revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if embed_origins is not UNSET:
            field_dict["embed_origins"] = embed_origins
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if revenue is not UNSET:
            field_dict["revenue"] = revenue

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        def _parse_embed_origins(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                embed_origins_type_0 = cast(list[str], data)

                return embed_origins_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        embed_origins = _parse_embed_origins(d.pop("embed_origins", UNSET))

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        def _parse_revenue(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        revenue = _parse_revenue(d.pop("revenue", UNSET))

        new_share_shape = cls(
            name=name,
            embed_origins=embed_origins,
            expires_at=expires_at,
            revenue=revenue,
        )

        return new_share_shape
