from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.company_profile_shape_social_type_0 import (
        CompanyProfileShapeSocialType0,
    )


T = TypeVar("T", bound="CompanyProfileShape")


@_attrs_define
class CompanyProfileShape:
    """The fields of a company profile: absent fields stay unchanged, empty ones are removed.

    Example:
        {'industry': 'Anvils', 'label': 'Acme', 'website': 'acme.com'}

    Attributes:
        description (None | str | Unset): What it does.
        emails (list[str] | None | Unset): Its e-mail addresses. Replaces all.
        industry (None | str | Unset): Its industry.
        label (None | str | Unset): What the organization calls the company. Of a new profile the default is the host of
            `website`.
        logo_url (None | str | Unset): The URL of its logo.
        name (None | str | Unset): The company's name.
        social (CompanyProfileShapeSocialType0 | None | Unset): Its pages elsewhere, by the name of the site. Replaces
            all.
        technologies (list[str] | None | Unset): The technologies of its website. Replaces all.
        website (None | str | Unset): The website: a URL, or a host. Its origin is kept. No two profiles have the same
            host and port; `www.` makes no difference.
    """

    description: None | str | Unset = UNSET
    emails: list[str] | None | Unset = UNSET
    industry: None | str | Unset = UNSET
    label: None | str | Unset = UNSET
    logo_url: None | str | Unset = UNSET
    name: None | str | Unset = UNSET
    social: CompanyProfileShapeSocialType0 | None | Unset = UNSET
    technologies: list[str] | None | Unset = UNSET
    website: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.company_profile_shape_social_type_0 import (
            CompanyProfileShapeSocialType0,
        )

        description: None | str | Unset
        if isinstance(self.description, Unset):
            description = UNSET
        else:
            description = self.description

        emails: list[str] | None | Unset
        if isinstance(self.emails, Unset):
            emails = UNSET
        elif isinstance(self.emails, list):
            emails = self.emails

        else:
            emails = self.emails

        industry: None | str | Unset
        if isinstance(self.industry, Unset):
            industry = UNSET
        else:
            industry = self.industry

        label: None | str | Unset
        if isinstance(self.label, Unset):
            label = UNSET
        else:
            label = self.label

        logo_url: None | str | Unset
        if isinstance(self.logo_url, Unset):
            logo_url = UNSET
        else:
            logo_url = self.logo_url

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        social: dict[str, Any] | None | Unset
        if isinstance(self.social, Unset):
            social = UNSET
        elif isinstance(self.social, CompanyProfileShapeSocialType0):
            social = self.social.to_dict()
        else:
            social = self.social

        technologies: list[str] | None | Unset
        if isinstance(self.technologies, Unset):
            technologies = UNSET
        elif isinstance(self.technologies, list):
            technologies = self.technologies

        else:
            technologies = self.technologies

        website: None | str | Unset
        if isinstance(self.website, Unset):
            website = UNSET
        else:
            website = self.website

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if description is not UNSET:
            field_dict["description"] = description
        if emails is not UNSET:
            field_dict["emails"] = emails
        if industry is not UNSET:
            field_dict["industry"] = industry
        if label is not UNSET:
            field_dict["label"] = label
        if logo_url is not UNSET:
            field_dict["logo_url"] = logo_url
        if name is not UNSET:
            field_dict["name"] = name
        if social is not UNSET:
            field_dict["social"] = social
        if technologies is not UNSET:
            field_dict["technologies"] = technologies
        if website is not UNSET:
            field_dict["website"] = website

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.company_profile_shape_social_type_0 import (
            CompanyProfileShapeSocialType0,
        )

        d = dict(src_dict)

        def _parse_description(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        description = _parse_description(d.pop("description", UNSET))

        def _parse_emails(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                emails_type_0 = cast(list[str], data)

                return emails_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        emails = _parse_emails(d.pop("emails", UNSET))

        def _parse_industry(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        industry = _parse_industry(d.pop("industry", UNSET))

        def _parse_label(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        label = _parse_label(d.pop("label", UNSET))

        def _parse_logo_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        logo_url = _parse_logo_url(d.pop("logo_url", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_social(
            data: object,
        ) -> CompanyProfileShapeSocialType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                social_type_0 = CompanyProfileShapeSocialType0.from_dict(data)

                return social_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompanyProfileShapeSocialType0 | None | Unset, data)

        social = _parse_social(d.pop("social", UNSET))

        def _parse_technologies(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                technologies_type_0 = cast(list[str], data)

                return technologies_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        technologies = _parse_technologies(d.pop("technologies", UNSET))

        def _parse_website(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        website = _parse_website(d.pop("website", UNSET))

        company_profile_shape = cls(
            description=description,
            emails=emails,
            industry=industry,
            label=label,
            logo_url=logo_url,
            name=name,
            social=social,
            technologies=technologies,
            website=website,
        )

        return company_profile_shape
