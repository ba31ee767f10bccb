from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.member_answer import MemberAnswer


T = TypeVar("T", bound="MembersAnswer")


@_attrs_define
class MembersAnswer:
    """The members of an organization.

    Attributes:
        members (list[MemberAnswer]): The members, oldest first.
        truncated (bool): Whether some are left out: never.
    """

    members: list[MemberAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        members = []
        for members_item_data in self.members:
            members_item = members_item_data.to_dict()
            members.append(members_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "members": members,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.member_answer import MemberAnswer

        d = dict(src_dict)
        members = []
        _members = d.pop("members")
        for members_item_data in _members:
            members_item = MemberAnswer.from_dict(members_item_data)

            members.append(members_item)

        truncated = d.pop("truncated")

        members_answer = cls(
            members=members,
            truncated=truncated,
        )

        return members_answer
