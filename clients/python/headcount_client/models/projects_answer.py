from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.project_answer import ProjectAnswer


T = TypeVar("T", bound="ProjectsAnswer")


@_attrs_define
class ProjectsAnswer:
    """The projects of an organization.

    Attributes:
        projects (list[ProjectAnswer]): The projects, oldest first.
        truncated (bool): Whether some are left out: never.
    """

    projects: list[ProjectAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        projects = []
        for projects_item_data in self.projects:
            projects_item = projects_item_data.to_dict()
            projects.append(projects_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "projects": projects,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.project_answer import ProjectAnswer

        d = dict(src_dict)
        projects = []
        _projects = d.pop("projects")
        for projects_item_data in _projects:
            projects_item = ProjectAnswer.from_dict(projects_item_data)

            projects.append(projects_item)

        truncated = d.pop("truncated")

        projects_answer = cls(
            projects=projects,
            truncated=truncated,
        )

        return projects_answer
