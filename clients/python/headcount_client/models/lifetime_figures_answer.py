from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="LifetimeFiguresAnswer")


@_attrs_define
class LifetimeFiguresAnswer:
    """Figures of a project, of all time.

    Attributes:
        currency (str): The currency of the revenue.
        events (int): How many events.
        orders (int): How many orders.
        revenue (float):
        sessions (int): How many sessions.
        unique_users (int): How many distinct users.
    """

    currency: str
    events: int
    orders: int
    revenue: float
    sessions: int
    unique_users: int

    def to_dict(self) -> dict[str, Any]:
        currency = self.currency

        events = self.events

        orders = self.orders

        revenue = self.revenue

        sessions = self.sessions

        unique_users = self.unique_users

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "currency": currency,
                "events": events,
                "orders": orders,
                "revenue": revenue,
                "sessions": sessions,
                "unique_users": unique_users,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        currency = d.pop("currency")

        events = d.pop("events")

        orders = d.pop("orders")

        revenue = d.pop("revenue")

        sessions = d.pop("sessions")

        unique_users = d.pop("unique_users")

        lifetime_figures_answer = cls(
            currency=currency,
            events=events,
            orders=orders,
            revenue=revenue,
            sessions=sessions,
            unique_users=unique_users,
        )

        return lifetime_figures_answer
