from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="BuildShape")


@_attrs_define
class BuildShape:
    """The website to read, and the profile to fill.

    Example:
        {'website': 'acme.com'}

    Attributes:
        website (str): The website: a URL, or a host. Its home page is read, and up to four pages about the company.
        profile_id (None | str | Unset): The profile to fill: `cp_…`. The default is the one with this website, else the
            organization's own, which is made if it is missing.
    """

    website: str
    profile_id: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        website = self.website

        profile_id: None | str | Unset
        if isinstance(self.profile_id, Unset):
            profile_id = UNSET
        else:
            profile_id = self.profile_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "website": website,
            }
        )
        if profile_id is not UNSET:
            field_dict["profile_id"] = profile_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        website = d.pop("website")

        def _parse_profile_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        profile_id = _parse_profile_id(d.pop("profile_id", UNSET))

        build_shape = cls(
            website=website,
            profile_id=profile_id,
        )

        return build_shape
