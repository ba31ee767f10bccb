from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.company_profile_answer import CompanyProfileAnswer


T = TypeVar("T", bound="CompanyProfilesAnswer")


@_attrs_define
class CompanyProfilesAnswer:
    """A part of the company profiles.

    Attributes:
        company_profiles (list[CompanyProfileAnswer]): The profiles, newest first.
        truncated (bool): Whether older ones follow.
    """

    company_profiles: list[CompanyProfileAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        company_profiles = []
        for company_profiles_item_data in self.company_profiles:
            company_profiles_item = company_profiles_item_data.to_dict()
            company_profiles.append(company_profiles_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "company_profiles": company_profiles,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.company_profile_answer import CompanyProfileAnswer

        d = dict(src_dict)
        company_profiles = []
        _company_profiles = d.pop("company_profiles")
        for company_profiles_item_data in _company_profiles:
            company_profiles_item = CompanyProfileAnswer.from_dict(
                company_profiles_item_data
            )

            company_profiles.append(company_profiles_item)

        truncated = d.pop("truncated")

        company_profiles_answer = cls(
            company_profiles=company_profiles,
            truncated=truncated,
        )

        return company_profiles_answer
