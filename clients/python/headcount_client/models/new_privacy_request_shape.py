from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.new_privacy_request_shape_type import NewPrivacyRequestShapeType
from ..types import UNSET, Unset

T = TypeVar("T", bound="NewPrivacyRequestShape")


@_attrs_define
class NewPrivacyRequestShape:
    """A new privacy request: its type, and whom it is about.

    Example:
        {'type': 'erasure', 'user_id': 'ada'}

    Attributes:
        type_ (NewPrivacyRequestShapeType): `export` makes a copy of what is recorded of the person; `erasure` removes
            it, and has nothing more recorded; `opt_in` has events of an erased person recorded again.
        anonymous_id (None | str | Unset): An anonymous id: the user that it is linked to, else itself.
        email (None | str | Unset): All identities that ever had this e-mail address. Exactly one of `email`, `user_id`
            and `anonymous_id` is given.
        project_id (None | str | Unset): The only project of the anonymous id; absent: all projects.
        user_id (None | str | Unset): The user's id, as it is sent with events.
    """

    type_: NewPrivacyRequestShapeType
    anonymous_id: None | str | Unset = UNSET
    email: None | str | Unset = UNSET
    project_id: None | str | Unset = UNSET
    user_id: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_.value

        anonymous_id: None | str | Unset
        if isinstance(self.anonymous_id, Unset):
            anonymous_id = UNSET
        else:
            anonymous_id = self.anonymous_id

        email: None | str | Unset
        if isinstance(self.email, Unset):
            email = UNSET
        else:
            email = self.email

        project_id: None | str | Unset
        if isinstance(self.project_id, Unset):
            project_id = UNSET
        else:
            project_id = self.project_id

        user_id: None | str | Unset
        if isinstance(self.user_id, Unset):
            user_id = UNSET
        else:
            user_id = self.user_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "type": type_,
            }
        )
        if anonymous_id is not UNSET:
            field_dict["anonymous_id"] = anonymous_id
        if email is not UNSET:
            field_dict["email"] = email
        if project_id is not UNSET:
            field_dict["project_id"] = project_id
        if user_id is not UNSET:
            field_dict["user_id"] = user_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        type_ = NewPrivacyRequestShapeType(d.pop("type"))

        def _parse_anonymous_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        anonymous_id = _parse_anonymous_id(d.pop("anonymous_id", UNSET))

        def _parse_email(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        email = _parse_email(d.pop("email", UNSET))

        def _parse_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        project_id = _parse_project_id(d.pop("project_id", UNSET))

        def _parse_user_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user_id = _parse_user_id(d.pop("user_id", UNSET))

        new_privacy_request_shape = cls(
            type_=type_,
            anonymous_id=anonymous_id,
            email=email,
            project_id=project_id,
            user_id=user_id,
        )

        return new_privacy_request_shape
