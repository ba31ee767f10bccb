from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.token_answer_role import TokenAnswerRole
from ..models.token_answer_scopes_item import TokenAnswerScopesItem

T = TypeVar("T", bound="TokenAnswer")


@_attrs_define
class TokenAnswer:
    """A token, without its secret.

    Attributes:
        burst (int): How many may be sent at once after a pause; 0: no limit.
        created_at (datetime.datetime):
        expires_at (datetime.datetime | None):
        member_id (None | str): The member who holds it; null: none.
        name (str): Its name.
        project_id (None | str): The one project that it is for; null: all.
        rate_limit (int): How many requests a second may be sent with it; 0: no limit.
        role (TokenAnswerRole): The role in the organization. That of a token is the lower of its own and its member's.
        scopes (list[TokenAnswerScopesItem]): What the token may be used for. No scope implies another.
        token_id (str): Its id, which is not secret.
    """

    burst: int
    created_at: datetime.datetime
    expires_at: datetime.datetime | None
    member_id: None | str
    name: str
    project_id: None | str
    rate_limit: int
    role: TokenAnswerRole
    scopes: list[TokenAnswerScopesItem]
    token_id: str

    def to_dict(self) -> dict[str, Any]:
        burst = self.burst

        created_at = self.created_at.isoformat()

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        member_id: None | str
        member_id = self.member_id

        name = self.name

        project_id: None | str
        project_id = self.project_id

        rate_limit = self.rate_limit

        role = self.role.value

        scopes = []
        for scopes_item_data in self.scopes:
            scopes_item = scopes_item_data.value
            scopes.append(scopes_item)

        token_id = self.token_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "burst": burst,
                "created_at": created_at,
                "expires_at": expires_at,
                "member_id": member_id,
                "name": name,
                "project_id": project_id,
                "rate_limit": rate_limit,
                "role": role,
                "scopes": scopes,
                "token_id": token_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        burst = d.pop("burst")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        def _parse_member_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        member_id = _parse_member_id(d.pop("member_id"))

        name = d.pop("name")

        def _parse_project_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        project_id = _parse_project_id(d.pop("project_id"))

        rate_limit = d.pop("rate_limit")

        role = TokenAnswerRole(d.pop("role"))

        scopes = []
        _scopes = d.pop("scopes")
        for scopes_item_data in _scopes:
            scopes_item = TokenAnswerScopesItem(scopes_item_data)

            scopes.append(scopes_item)

        token_id = d.pop("token_id")

        token_answer = cls(
            burst=burst,
            created_at=created_at,
            expires_at=expires_at,
            member_id=member_id,
            name=name,
            project_id=project_id,
            rate_limit=rate_limit,
            role=role,
            scopes=scopes,
            token_id=token_id,
        )

        return token_answer
