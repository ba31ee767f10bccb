from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.actor_row_kind import ActorRowKind

T = TypeVar("T", bound="ActorRow")


@_attrs_define
class ActorRow:
    """Who made a change.

    Attributes:
        kind (ActorRowKind): `token`: the holder of an API token; `root`: of the root token; `cli`: a command on the
            data directory of a stopped server; `system`: the program.
        member_id (None | str): The member who held the token; null if nobody did.
        token_id (None | str): The token; null if the actor has none.
    """

    kind: ActorRowKind
    member_id: None | str
    token_id: None | str

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind.value

        member_id: None | str
        member_id = self.member_id

        token_id: None | str
        token_id = self.token_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "member_id": member_id,
                "token_id": token_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        kind = ActorRowKind(d.pop("kind"))

        def _parse_member_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        member_id = _parse_member_id(d.pop("member_id"))

        def _parse_token_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        token_id = _parse_token_id(d.pop("token_id"))

        actor_row = cls(
            kind=kind,
            member_id=member_id,
            token_id=token_id,
        )

        return actor_row
