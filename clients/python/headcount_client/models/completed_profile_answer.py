from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="CompletedProfileAnswer")


@_attrs_define
class CompletedProfileAnswer:
    """The figures of a user in the window, and the first and last event ever.

    Attributes:
        active_days (int): On how many days there were events.
        bounce_rate (float):
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        duration_avg_sec (float):
        duration_p90_sec (float):
        events (int): How many events.
        first_seen (datetime.datetime):
        identity_id (str): The identity, `id_…`.
        last_seen (datetime.datetime):
        pageviews (int): How many of them were pageviews.
        revenue (float):
        sessions (int): Sessions that began in the window.
    """

    active_days: int
    bounce_rate: float
    complete_from: datetime.date | None
    duration_avg_sec: float
    duration_p90_sec: float
    events: int
    first_seen: datetime.datetime
    identity_id: str
    last_seen: datetime.datetime
    pageviews: int
    revenue: float
    sessions: int

    def to_dict(self) -> dict[str, Any]:
        active_days = self.active_days

        bounce_rate = self.bounce_rate

        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        duration_avg_sec = self.duration_avg_sec

        duration_p90_sec = self.duration_p90_sec

        events = self.events

        first_seen = self.first_seen.isoformat()

        identity_id = self.identity_id

        last_seen = self.last_seen.isoformat()

        pageviews = self.pageviews

        revenue = self.revenue

        sessions = self.sessions

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "active_days": active_days,
                "bounce_rate": bounce_rate,
                "complete_from": complete_from,
                "duration_avg_sec": duration_avg_sec,
                "duration_p90_sec": duration_p90_sec,
                "events": events,
                "first_seen": first_seen,
                "identity_id": identity_id,
                "last_seen": last_seen,
                "pageviews": pageviews,
                "revenue": revenue,
                "sessions": sessions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        active_days = d.pop("active_days")

        bounce_rate = d.pop("bounce_rate")

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

        duration_avg_sec = d.pop("duration_avg_sec")

        duration_p90_sec = d.pop("duration_p90_sec")

        events = d.pop("events")

        first_seen = datetime.datetime.fromisoformat(d.pop("first_seen"))

        identity_id = d.pop("identity_id")

        last_seen = datetime.datetime.fromisoformat(d.pop("last_seen"))

        pageviews = d.pop("pageviews")

        revenue = d.pop("revenue")

        sessions = d.pop("sessions")

        completed_profile_answer = cls(
            active_days=active_days,
            bounce_rate=bounce_rate,
            complete_from=complete_from,
            duration_avg_sec=duration_avg_sec,
            duration_p90_sec=duration_p90_sec,
            events=events,
            first_seen=first_seen,
            identity_id=identity_id,
            last_seen=last_seen,
            pageviews=pageviews,
            revenue=revenue,
            sessions=sessions,
        )

        return completed_profile_answer
