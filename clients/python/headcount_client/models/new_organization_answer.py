from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="NewOrganizationAnswer")


@_attrs_define
class NewOrganizationAnswer:
    """A new organization, and the keys that it comes with.

    Attributes:
        api_token (str): A token of role owner with every scope. It is shown here once, and kept nowhere.
        organization_id (str): Its id.
        project_id (str): Its first project.
        public_key (str): The public key of that project.
    """

    api_token: str
    organization_id: str
    project_id: str
    public_key: str

    def to_dict(self) -> dict[str, Any]:
        api_token = self.api_token

        organization_id = self.organization_id

        project_id = self.project_id

        public_key = self.public_key

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "api_token": api_token,
                "organization_id": organization_id,
                "project_id": project_id,
                "public_key": public_key,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        api_token = d.pop("api_token")

        organization_id = d.pop("organization_id")

        project_id = d.pop("project_id")

        public_key = d.pop("public_key")

        new_organization_answer = cls(
            api_token=api_token,
            organization_id=organization_id,
            project_id=project_id,
            public_key=public_key,
        )

        return new_organization_answer
