from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.member_patch_shape_role import MemberPatchShapeRole
from ..types import UNSET, Unset

T = TypeVar("T", bound="MemberPatchShape")


@_attrs_define
class MemberPatchShape:
    """A change of a member: absent fields stay unchanged.

    Example:
        {'role': 'member'}

    Attributes:
        email (None | str | Unset): The new e-mail address.
        name (None | str | Unset): The new name; empty removes it.
        role (MemberPatchShapeRole | Unset): The role in the organization. That of a token is the lower of its own and
            its member's.
    """

    email: None | str | Unset = UNSET
    name: None | str | Unset = UNSET
    role: MemberPatchShapeRole | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        email: None | str | Unset
        if isinstance(self.email, Unset):
            email = UNSET
        else:
            email = self.email

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        role: str | Unset = UNSET
        if not isinstance(self.role, Unset):
            role = self.role.value

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if email is not UNSET:
            field_dict["email"] = email
        if name is not UNSET:
            field_dict["name"] = name
        if role is not UNSET:
            field_dict["role"] = role

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_email(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        email = _parse_email(d.pop("email", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        _role = d.pop("role", UNSET)
        role: MemberPatchShapeRole | Unset
        if isinstance(_role, Unset):
            role = UNSET
        else:
            role = MemberPatchShapeRole(_role)

        member_patch_shape = cls(
            email=email,
            name=name,
            role=role,
        )

        return member_patch_shape
