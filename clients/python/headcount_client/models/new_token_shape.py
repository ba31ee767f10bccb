from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.new_token_shape_role import NewTokenShapeRole
from ..models.new_token_shape_scopes_item import NewTokenShapeScopesItem
from ..types import UNSET, Unset

T = TypeVar("T", bound="NewTokenShape")


@_attrs_define
class NewTokenShape:
    """A token to be made.

    Example:
        {'name': 'dashboard', 'role': 'admin', 'scopes': ['analytics:read', 'revenue:read']}

    Attributes:
        name (str): Its name.
        role (NewTokenShapeRole): The role in the organization. That of a token is the lower of its own and its
            member's.
        scopes (list[NewTokenShapeScopesItem]): What the token may be used for. No scope implies another.
        expires_at (datetime.datetime | None | Unset): From when on it is refused; in the future. Default: never.
        member_id (None | str | Unset): The member who holds it. The token has the lower of the two roles, and is
            revoked with the member. Default: none.
        project_id (None | str | Unset): The one project that it is for. Default: all.
    """

    name: str
    role: NewTokenShapeRole
    scopes: list[NewTokenShapeScopesItem]
    expires_at: datetime.datetime | None | Unset = UNSET
    member_id: None | str | Unset = UNSET
    project_id: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        role = self.role.value

        scopes = []
        for scopes_item_data in self.scopes:
            scopes_item = scopes_item_data.value
            scopes.append(scopes_item)

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        member_id: None | str | Unset
        if isinstance(self.member_id, Unset):
            member_id = UNSET
        else:
            member_id = self.member_id

        project_id: None | str | Unset
        if isinstance(self.project_id, Unset):
            project_id = UNSET
        else:
            project_id = self.project_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "role": role,
                "scopes": scopes,
            }
        )
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if member_id is not UNSET:
            field_dict["member_id"] = member_id
        if project_id is not UNSET:
            field_dict["project_id"] = project_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        role = NewTokenShapeRole(d.pop("role"))

        scopes = []
        _scopes = d.pop("scopes")
        for scopes_item_data in _scopes:
            scopes_item = NewTokenShapeScopesItem(scopes_item_data)

            scopes.append(scopes_item)

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

        def _parse_member_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        member_id = _parse_member_id(d.pop("member_id", UNSET))

        def _parse_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        project_id = _parse_project_id(d.pop("project_id", UNSET))

        new_token_shape = cls(
            name=name,
            role=role,
            scopes=scopes,
            expires_at=expires_at,
            member_id=member_id,
            project_id=project_id,
        )

        return new_token_shape
