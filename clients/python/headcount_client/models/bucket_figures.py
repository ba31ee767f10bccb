from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="BucketFigures")


@_attrs_define
class BucketFigures:
    """The figures of a bucket.

    Attributes:
        bounce_rate (float):
        bucket (str): The first day of a day, week or month, be it before the window; of an hour the instant of its
            start.
        complete (bool): Whether all of the bucket lies in the window and is over.
        duration_avg_sec (float):
        events (int): The chosen events.
        pageviews (int): The chosen pageviews.
        sessions (int): The sessions whose first event is in the bucket.
        unique_users (int): The distinct users.
        orders (int | Unset): How many orders.
        revenue (float | Unset):
    """

    bounce_rate: float
    bucket: str
    complete: bool
    duration_avg_sec: float
    events: int
    pageviews: int
    sessions: int
    unique_users: int
    orders: int | Unset = UNSET
    revenue: float | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        bounce_rate = self.bounce_rate

        bucket = self.bucket

        complete = self.complete

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
                "bucket": bucket,
                "complete": complete,
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

        bucket = d.pop("bucket")

        complete = d.pop("complete")

        duration_avg_sec = d.pop("duration_avg_sec")

        events = d.pop("events")

        pageviews = d.pop("pageviews")

        sessions = d.pop("sessions")

        unique_users = d.pop("unique_users")

        orders = d.pop("orders", UNSET)

        revenue = d.pop("revenue", UNSET)

        bucket_figures = cls(
            bounce_rate=bounce_rate,
            bucket=bucket,
            complete=complete,
            duration_avg_sec=duration_avg_sec,
            events=events,
            pageviews=pageviews,
            sessions=sessions,
            unique_users=unique_users,
            orders=orders,
            revenue=revenue,
        )

        return bucket_figures
