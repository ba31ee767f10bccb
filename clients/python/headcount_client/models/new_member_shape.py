from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.new_member_shape_role import NewMemberShapeRole
from ..types import UNSET, Unset

T = TypeVar("T", bound="NewMemberShape")


@_attrs_define
class NewMemberShape:
    """A new member.

    Example:
        {'email': 'ada@acme.com', 'name': 'Ada', 'role': 'admin'}

    Attributes:
        email (str): The e-mail address. No other member of the organization has it.
        role (NewMemberShapeRole): The role in the organization. That of a token is the lower of its own and its
            member's.
        name (None | str | Unset): The name. Default: none.
    """

    email: str
    role: NewMemberShapeRole
    name: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        email = self.email

        role = self.role.value

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "email": email,
                "role": role,
            }
        )
        if name is not UNSET:
            field_dict["name"] = name

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        email = d.pop("email")

        role = NewMemberShapeRole(d.pop("role"))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        new_member_shape = cls(
            email=email,
            role=role,
            name=name,
        )

        return new_member_shape
