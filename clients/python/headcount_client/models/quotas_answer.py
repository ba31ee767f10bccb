from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="QuotasAnswer")


@_attrs_define
class QuotasAnswer:
    """How many different things a project may have over its lifetime. An event with one more is refused: 429
    `quota_exceeded`.

        Attributes:
            companies (int): Companies.
            groups (int): Groups.
            pages (int): Pages.
            sources (int): Sources, mediums, campaigns and referrers, together.
    """

    companies: int
    groups: int
    pages: int
    sources: int

    def to_dict(self) -> dict[str, Any]:
        companies = self.companies

        groups = self.groups

        pages = self.pages

        sources = self.sources

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "companies": companies,
                "groups": groups,
                "pages": pages,
                "sources": sources,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        companies = d.pop("companies")

        groups = d.pop("groups")

        pages = d.pop("pages")

        sources = d.pop("sources")

        quotas_answer = cls(
            companies=companies,
            groups=groups,
            pages=pages,
            sources=sources,
        )

        return quotas_answer
