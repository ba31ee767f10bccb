from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="CompanyRow")


@_attrs_define
class CompanyRow:
    """One of the most active companies.

    Attributes:
        company_id (str): The company, `co_…`.
        domain (None | str): Its domain; null if it has none.
        events (int): How many events in the range.
        last_seen (datetime.datetime):
        name (None | str): Its name; null if no event has reported it.
        revenue (float):
        users (int): How many different users in the range.
    """

    company_id: str
    domain: None | str
    events: int
    last_seen: datetime.datetime
    name: None | str
    revenue: float
    users: int

    def to_dict(self) -> dict[str, Any]:
        company_id = self.company_id

        domain: None | str
        domain = self.domain

        events = self.events

        last_seen = self.last_seen.isoformat()

        name: None | str
        name = self.name

        revenue = self.revenue

        users = self.users

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "company_id": company_id,
                "domain": domain,
                "events": events,
                "last_seen": last_seen,
                "name": name,
                "revenue": revenue,
                "users": users,
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

        last_seen = datetime.datetime.fromisoformat(d.pop("last_seen"))

        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))

        revenue = d.pop("revenue")

        users = d.pop("users")

        company_row = cls(
            company_id=company_id,
            domain=domain,
            events=events,
            last_seen=last_seen,
            name=name,
            revenue=revenue,
            users=users,
        )

        return company_row
