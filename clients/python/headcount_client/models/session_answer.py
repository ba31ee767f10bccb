from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.session_answer_role import SessionAnswerRole
from ..models.session_answer_scopes_item import SessionAnswerScopesItem

if TYPE_CHECKING:
    from ..models.session_project import SessionProject


T = TypeVar("T", bound="SessionAnswer")


@_attrs_define
class SessionAnswer:
    """Who is signed in, and what the page can show.

    Attributes:
        expires_at (datetime.datetime | None):
        projects (list[SessionProject]): The projects: all of the organization, or the one that the token or the share
            is for.
        role (SessionAnswerRole): The role in the organization. That of a token is the lower of its own and its
            member's.
        scopes (list[SessionAnswerScopesItem]): What the token may be used for. No scope implies another.
        share (bool): Whether it is a share: figures of one project, of no people and no companies.
        timezone (str): The timezone of the days.
    """

    expires_at: datetime.datetime | None
    projects: list[SessionProject]
    role: SessionAnswerRole
    scopes: list[SessionAnswerScopesItem]
    share: bool
    timezone: str

    def to_dict(self) -> dict[str, Any]:
        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        projects = []
        for projects_item_data in self.projects:
            projects_item = projects_item_data.to_dict()
            projects.append(projects_item)

        role = self.role.value

        scopes = []
        for scopes_item_data in self.scopes:
            scopes_item = scopes_item_data.value
            scopes.append(scopes_item)

        share = self.share

        timezone = self.timezone

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "expires_at": expires_at,
                "projects": projects,
                "role": role,
                "scopes": scopes,
                "share": share,
                "timezone": timezone,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.session_project import SessionProject

        d = dict(src_dict)

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

        projects = []
        _projects = d.pop("projects")
        for projects_item_data in _projects:
            projects_item = SessionProject.from_dict(projects_item_data)

            projects.append(projects_item)

        role = SessionAnswerRole(d.pop("role"))

        scopes = []
        _scopes = d.pop("scopes")
        for scopes_item_data in _scopes:
            scopes_item = SessionAnswerScopesItem(scopes_item_data)

            scopes.append(scopes_item)

        share = d.pop("share")

        timezone = d.pop("timezone")

        session_answer = cls(
            expires_at=expires_at,
            projects=projects,
            role=role,
            scopes=scopes,
            share=share,
            timezone=timezone,
        )

        return session_answer
