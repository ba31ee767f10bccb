from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="CompletedCompanyAnswer")


@_attrs_define
class CompletedCompanyAnswer:
    """The figures of a company in the range, and its first and last event ever.

    Attributes:
        company_id (str): The company, `co_…`.
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        currency (str): The currency of all amounts: the organization's.
        domain (None | str): Its domain; null if it has none.
        events (int): How many events.
        first_seen (datetime.datetime):
        last_seen (datetime.datetime):
        name (None | str): Its name; null if no event has reported it.
        orders (int): How many orders.
        revenue (float):
        sessions (int): Sessions that began in the range, and began as the company's.
        users (int): How many different users.
    """

    company_id: str
    complete_from: datetime.date | None
    currency: str
    domain: None | str
    events: int
    first_seen: datetime.datetime
    last_seen: datetime.datetime
    name: None | str
    orders: int
    revenue: float
    sessions: int
    users: int

    def to_dict(self) -> dict[str, Any]:
        company_id = self.company_id

        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        currency = self.currency

        domain: None | str
        domain = self.domain

        events = self.events

        first_seen = self.first_seen.isoformat()

        last_seen = self.last_seen.isoformat()

        name: None | str
        name = self.name

        orders = self.orders

        revenue = self.revenue

        sessions = self.sessions

        users = self.users

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "company_id": company_id,
                "complete_from": complete_from,
                "currency": currency,
                "domain": domain,
                "events": events,
                "first_seen": first_seen,
                "last_seen": last_seen,
                "name": name,
                "orders": orders,
                "revenue": revenue,
                "sessions": sessions,
                "users": users,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        company_id = d.pop("company_id")

        def _parse_complete_from(data: object) -> datetime.date | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                complete_from_type_0 = datetime.date.fromisoformat(data)

                return complete_from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.date | None, data)

        complete_from = _parse_complete_from(d.pop("complete_from"))

        currency = d.pop("currency")

        def _parse_domain(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        domain = _parse_domain(d.pop("domain"))

        events = d.pop("events")

        first_seen = datetime.datetime.fromisoformat(d.pop("first_seen"))

        last_seen = datetime.datetime.fromisoformat(d.pop("last_seen"))

        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))

        orders = d.pop("orders")

        revenue = d.pop("revenue")

        sessions = d.pop("sessions")

        users = d.pop("users")

        completed_company_answer = cls(
            company_id=company_id,
            complete_from=complete_from,
            currency=currency,
            domain=domain,
            events=events,
            first_seen=first_seen,
            last_seen=last_seen,
            name=name,
            orders=orders,
            revenue=revenue,
            sessions=sessions,
            users=users,
        )

        return completed_company_answer
