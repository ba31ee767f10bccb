from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.event_row import EventRow


T = TypeVar("T", bound="EventsAnswer")


@_attrs_define
class EventsAnswer:
    """A page of events.

    Attributes:
        end_date (None | str): The last day; null if there is no window.
        events (list[EventRow]): The events: the latest `timestamp` first, then the highest `position`; with
            `after_position`, the lowest position first.
        next_ (None | str): The cursor of the next page; null at the end, and with `after_position`.
        position (int):
        start_date (None | str): The first day; null if there is no window.
        timezone (str): The timezone of the days.
    """

    end_date: None | str
    events: list[EventRow]
    next_: None | str
    position: int
    start_date: None | str
    timezone: str

    def to_dict(self) -> dict[str, Any]:
        end_date: None | str
        end_date = self.end_date

        events = []
        for events_item_data in self.events:
            events_item = events_item_data.to_dict()
            events.append(events_item)

        next_: None | str
        next_ = self.next_

        position = self.position

        start_date: None | str
        start_date = self.start_date

        timezone = self.timezone

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "end_date": end_date,
                "events": events,
                "next": next_,
                "position": position,
                "start_date": start_date,
                "timezone": timezone,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.event_row import EventRow

        d = dict(src_dict)

        def _parse_end_date(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        end_date = _parse_end_date(d.pop("end_date"))

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = EventRow.from_dict(events_item_data)

            events.append(events_item)

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        position = d.pop("position")

        def _parse_start_date(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        start_date = _parse_start_date(d.pop("start_date"))

        timezone = d.pop("timezone")

        events_answer = cls(
            end_date=end_date,
            events=events,
            next_=next_,
            position=position,
            start_date=start_date,
            timezone=timezone,
        )

        return events_answer
