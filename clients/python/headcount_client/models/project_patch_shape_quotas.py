from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ProjectPatchShapeQuotas")


@_attrs_define
class ProjectPatchShapeQuotas:
    """The quotas to change. Absent ones stay unchanged.

    Attributes:
        companies (int | Unset):
        groups (int | Unset):
        pages (int | Unset):
        sources (int | Unset):
    """

    companies: int | Unset = UNSET
    groups: int | Unset = UNSET
    pages: int | Unset = UNSET
    sources: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        companies = self.companies

        groups = self.groups

        pages = self.pages

        sources = self.sources

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if companies is not UNSET:
            field_dict["companies"] = companies
        if groups is not UNSET:
            field_dict["groups"] = groups
        if pages is not UNSET:
            field_dict["pages"] = pages
        if sources is not UNSET:
            field_dict["sources"] = sources

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        companies = d.pop("companies", UNSET)

        groups = d.pop("groups", UNSET)

        pages = d.pop("pages", UNSET)

        sources = d.pop("sources", UNSET)

        project_patch_shape_quotas = cls(
            companies=companies,
            groups=groups,
            pages=pages,
            sources=sources,
        )

        return project_patch_shape_quotas
