from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PreviousRow")


@_attrs_define
class PreviousRow:
    """The figures of a row in the window that is compared with.

    Attributes:
        events (int): The events.
        pageviews (int): The pageviews.
        sessions (int): The sessions.
        unique_users (int): The distinct users.
        orders (int | Unset): How many orders.
        revenue (float | Unset):
    """

    events: int
    pageviews: int
    sessions: int
    unique_users: int
    orders: int | Unset = UNSET
    revenue: float | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        pageviews = self.pageviews

        sessions = self.sessions

        unique_users = self.unique_users

        orders = self.orders

        revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "events": events,
                "pageviews": pageviews,
                "sessions": sessions,
                "unique_users": unique_users,
            }
        )
        if orders is not UNSET:
            field_dict["orders"] = orders
        if revenue is not UNSET:
            field_dict["revenue"] = revenue

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        events = d.pop("events")

        pageviews = d.pop("pageviews")

        sessions = d.pop("sessions")

        unique_users = d.pop("unique_users")

        orders = d.pop("orders", UNSET)

        revenue = d.pop("revenue", UNSET)

        previous_row = cls(
            events=events,
            pageviews=pageviews,
            sessions=sessions,
            unique_users=unique_users,
            orders=orders,
            revenue=revenue,
        )

        return previous_row
