from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="PrivacyArtifactShapeCompaniesItem")


@_attrs_define
class PrivacyArtifactShapeCompaniesItem:
    """A company that events belong to.

    Attributes:
        company_id (str): The company, `co_…`.
        domain (None | str): Its domain.
        events (int): How many of the events.
        name (None | str): Its name.
    """

    company_id: str
    domain: None | str
    events: int
    name: None | str

    def to_dict(self) -> dict[str, Any]:
        company_id = self.company_id

        domain: None | str
        domain = self.domain

        events = self.events

        name: None | str
        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "company_id": company_id,
                "domain": domain,
                "events": events,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        company_id = d.pop("company_id")

        def _parse_domain(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        domain = _parse_domain(d.pop("domain"))

        events = d.pop("events")

        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))

        privacy_artifact_shape_companies_item = cls(
            company_id=company_id,
            domain=domain,
            events=events,
            name=name,
        )

        return privacy_artifact_shape_companies_item
