from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.company_profile_answer_kind import CompanyProfileAnswerKind

if TYPE_CHECKING:
    from ..models.company_profile_answer_social import CompanyProfileAnswerSocial
    from ..models.profile_source_answer import ProfileSourceAnswer


T = TypeVar("T", bound="CompanyProfileAnswer")


@_attrs_define
class CompanyProfileAnswer:
    """A company profile.

    Attributes:
        company_id (None | str): The id of the company with the website's domain, recorded or not; null without a
            domain.
        created_at (datetime.datetime):
        description (None | str): What it does.
        emails (list[str]): Its e-mail addresses.
        id (str): The profile's id.
        industry (None | str): Its industry.
        kind (CompanyProfileAnswerKind): `self`: the organization's own profile; `account`: a target account's.
        label (str): What the organization calls the company.
        logo_url (None | str): The URL of its logo.
        name (None | str): The company's name; null if unknown, as are the next three.
        social (CompanyProfileAnswerSocial): Its pages elsewhere, by the name of the site.
        sources (list[ProfileSourceAnswer]): The pages that were fetched for it.
        technologies (list[str]): The technologies of its website.
        updated_at (datetime.datetime):
        website (None | str): The origin of the website; null for none.
    """

    company_id: None | str
    created_at: datetime.datetime
    description: None | str
    emails: list[str]
    id: str
    industry: None | str
    kind: CompanyProfileAnswerKind
    label: str
    logo_url: None | str
    name: None | str
    social: CompanyProfileAnswerSocial
    sources: list[ProfileSourceAnswer]
    technologies: list[str]
    updated_at: datetime.datetime
    website: None | str

    def to_dict(self) -> dict[str, Any]:
        company_id: None | str
        company_id = self.company_id

        created_at = self.created_at.isoformat()

        description: None | str
        description = self.description

        emails = self.emails

        id = self.id

        industry: None | str
        industry = self.industry

        kind = self.kind.value

        label = self.label

        logo_url: None | str
        logo_url = self.logo_url

        name: None | str
        name = self.name

        social = self.social.to_dict()

        sources = []
        for sources_item_data in self.sources:
            sources_item = sources_item_data.to_dict()
            sources.append(sources_item)

        technologies = self.technologies

        updated_at = self.updated_at.isoformat()

        website: None | str
        website = self.website

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "company_id": company_id,
                "created_at": created_at,
                "description": description,
                "emails": emails,
                "id": id,
                "industry": industry,
                "kind": kind,
                "label": label,
                "logo_url": logo_url,
                "name": name,
                "social": social,
                "sources": sources,
                "technologies": technologies,
                "updated_at": updated_at,
                "website": website,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.company_profile_answer_social import CompanyProfileAnswerSocial
        from ..models.profile_source_answer import ProfileSourceAnswer

        d = dict(src_dict)

        def _parse_company_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        company_id = _parse_company_id(d.pop("company_id"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_description(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        description = _parse_description(d.pop("description"))

        emails = cast(list[str], d.pop("emails"))

        id = d.pop("id")

        def _parse_industry(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        industry = _parse_industry(d.pop("industry"))

        kind = CompanyProfileAnswerKind(d.pop("kind"))

        label = d.pop("label")

        def _parse_logo_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        logo_url = _parse_logo_url(d.pop("logo_url"))

        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))

        social = CompanyProfileAnswerSocial.from_dict(d.pop("social"))

        sources = []
        _sources = d.pop("sources")
        for sources_item_data in _sources:
            sources_item = ProfileSourceAnswer.from_dict(sources_item_data)

            sources.append(sources_item)

        technologies = cast(list[str], d.pop("technologies"))

        updated_at = datetime.datetime.fromisoformat(d.pop("updated_at"))

        def _parse_website(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        website = _parse_website(d.pop("website"))

        company_profile_answer = cls(
            company_id=company_id,
            created_at=created_at,
            description=description,
            emails=emails,
            id=id,
            industry=industry,
            kind=kind,
            label=label,
            logo_url=logo_url,
            name=name,
            social=social,
            sources=sources,
            technologies=technologies,
            updated_at=updated_at,
            website=website,
        )

        return company_profile_answer
