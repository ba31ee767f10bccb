from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="TotalFigures")


@_attrs_define
class TotalFigures:
    """The figures of chosen events, and of the sessions that hold them.

    Attributes:
        bounce_rate (float):
        duration_avg_sec (float):
        events (int): The chosen events.
        pageviews (int): The chosen pageviews.
        sessions (int): The sessions that began in the window and hold a chosen event.
        unique_users (int): The distinct users: a union, not the sum of those of the buckets.
        orders (int | Unset): How many orders.
        revenue (float | Unset):
    """

    bounce_rate: float
    duration_avg_sec: float
    events: int
    pageviews: int
    sessions: int
    unique_users: int
    orders: int | Unset = UNSET
    revenue: float | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        bounce_rate = self.bounce_rate

        duration_avg_sec = self.duration_avg_sec

        events = self.events

        pageviews = self.pageviews

        sessions = self.sessions

        unique_users = self.unique_users

        orders = self.orders

        revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "bounce_rate": bounce_rate,
                "duration_avg_sec": duration_avg_sec,
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
        bounce_rate = d.pop("bounce_rate")

        duration_avg_sec = d.pop("duration_avg_sec")

        events = d.pop("events")

        pageviews = d.pop("pageviews")

        sessions = d.pop("sessions")

        unique_users = d.pop("unique_users")

        orders = d.pop("orders", UNSET)

        revenue = d.pop("revenue", UNSET)

        total_figures = cls(
            bounce_rate=bounce_rate,
            duration_avg_sec=duration_avg_sec,
            events=events,
            pageviews=pageviews,
            sessions=sessions,
            unique_users=unique_users,
            orders=orders,
            revenue=revenue,
        )

        return total_figures
