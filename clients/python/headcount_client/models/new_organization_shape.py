from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="NewOrganizationShape")


@_attrs_define
class NewOrganizationShape:
    """An organization to be made.

    Example:
        {'name': 'Acme'}

    Attributes:
        name (str): Its name.
    """

    name: str

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        new_organization_shape = cls(
            name=name,
        )

        return new_organization_shape
