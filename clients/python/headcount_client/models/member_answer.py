from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.member_answer_role import MemberAnswerRole

T = TypeVar("T", bound="MemberAnswer")


@_attrs_define
class MemberAnswer:
    """A member: a person who holds API tokens.

    Attributes:
        created_at (datetime.datetime):
        email (str): The e-mail address, in lower case.
        member_id (str): The member's id.
        name (None | str): The name; null if there is none.
        role (MemberAnswerRole): The role in the organization. That of a token is the lower of its own and its member's.
    """

    created_at: datetime.datetime
    email: str
    member_id: str
    name: None | str
    role: MemberAnswerRole

    def to_dict(self) -> dict[str, Any]:
        created_at = self.created_at.isoformat()

        email = self.email

        member_id = self.member_id

        name: None | str
        name = self.name

        role = self.role.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "created_at": created_at,
                "email": email,
                "member_id": member_id,
                "name": name,
                "role": role,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        email = d.pop("email")

        member_id = d.pop("member_id")

        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))

        role = MemberAnswerRole(d.pop("role"))

        member_answer = cls(
            created_at=created_at,
            email=email,
            member_id=member_id,
            name=name,
            role=role,
        )

        return member_answer
