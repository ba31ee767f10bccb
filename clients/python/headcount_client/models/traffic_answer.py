from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.sessions_row import SessionsRow


T = TypeVar("T", bound="TrafficAnswer")


@_attrs_define
class TrafficAnswer:
    """The sessions that began in a window.

    Attributes:
        bounce_rate (float):
        bounces (int): Sessions of exactly one event.
        by_campaign (list[SessionsRow]): By campaign; `(none)` if it is unknown.
        by_channel (list[SessionsRow]): By acquisition channel. All lists are by sessions, descending, and not longer
            than `limit`.
        by_medium (list[SessionsRow]): By medium; `(none)` if it is unknown.
        by_source (list[SessionsRow]): By source; `(direct)` if it is unknown.
        end_date (str): The last day.
        sessions (int): How many sessions.
        start_date (str): The first day.
        timezone (str): The timezone of the days.
        truncated (bool): Whether one of the lists has more rows.
    """

    bounce_rate: float
    bounces: int
    by_campaign: list[SessionsRow]
    by_channel: list[SessionsRow]
    by_medium: list[SessionsRow]
    by_source: list[SessionsRow]
    end_date: str
    sessions: int
    start_date: str
    timezone: str
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        bounce_rate = self.bounce_rate

        bounces = self.bounces

        by_campaign = []
        for by_campaign_item_data in self.by_campaign:
            by_campaign_item = by_campaign_item_data.to_dict()
            by_campaign.append(by_campaign_item)

        by_channel = []
        for by_channel_item_data in self.by_channel:
            by_channel_item = by_channel_item_data.to_dict()
            by_channel.append(by_channel_item)

        by_medium = []
        for by_medium_item_data in self.by_medium:
            by_medium_item = by_medium_item_data.to_dict()
            by_medium.append(by_medium_item)

        by_source = []
        for by_source_item_data in self.by_source:
            by_source_item = by_source_item_data.to_dict()
            by_source.append(by_source_item)

        end_date = self.end_date

        sessions = self.sessions

        start_date = self.start_date

        timezone = self.timezone

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "bounce_rate": bounce_rate,
                "bounces": bounces,
                "by_campaign": by_campaign,
                "by_channel": by_channel,
                "by_medium": by_medium,
                "by_source": by_source,
                "end_date": end_date,
                "sessions": sessions,
                "start_date": start_date,
                "timezone": timezone,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.sessions_row import SessionsRow

        d = dict(src_dict)
        bounce_rate = d.pop("bounce_rate")

        bounces = d.pop("bounces")

        by_campaign = []
        _by_campaign = d.pop("by_campaign")
        for by_campaign_item_data in _by_campaign:
            by_campaign_item = SessionsRow.from_dict(by_campaign_item_data)

            by_campaign.append(by_campaign_item)

        by_channel = []
        _by_channel = d.pop("by_channel")
        for by_channel_item_data in _by_channel:
            by_channel_item = SessionsRow.from_dict(by_channel_item_data)

            by_channel.append(by_channel_item)

        by_medium = []
        _by_medium = d.pop("by_medium")
        for by_medium_item_data in _by_medium:
            by_medium_item = SessionsRow.from_dict(by_medium_item_data)

            by_medium.append(by_medium_item)

        by_source = []
        _by_source = d.pop("by_source")
        for by_source_item_data in _by_source:
            by_source_item = SessionsRow.from_dict(by_source_item_data)

            by_source.append(by_source_item)

        end_date = d.pop("end_date")

        sessions = d.pop("sessions")

        start_date = d.pop("start_date")

        timezone = d.pop("timezone")

        truncated = d.pop("truncated")

        traffic_answer = cls(
            bounce_rate=bounce_rate,
            bounces=bounces,
            by_campaign=by_campaign,
            by_channel=by_channel,
            by_medium=by_medium,
            by_source=by_source,
            end_date=end_date,
            sessions=sessions,
            start_date=start_date,
            timezone=timezone,
            truncated=truncated,
        )

        return traffic_answer
