from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem")


@_attrs_define
class PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem:
    """An anonymous id.

    Attributes:
        anonymous_id (str): The id.
        project_id (str): The project that reported it.
    """

    anonymous_id: str
    project_id: str

    def to_dict(self) -> dict[str, Any]:
        anonymous_id = self.anonymous_id

        project_id = self.project_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "anonymous_id": anonymous_id,
                "project_id": project_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        anonymous_id = d.pop("anonymous_id")

        project_id = d.pop("project_id")

        privacy_artifact_shape_identities_item_anonymous_ids_item = cls(
            anonymous_id=anonymous_id,
            project_id=project_id,
        )

        return privacy_artifact_shape_identities_item_anonymous_ids_item
