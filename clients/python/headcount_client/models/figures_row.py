from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.previous_row import PreviousRow


T = TypeVar("T", bound="FiguresRow")


@_attrs_define
class FiguresRow:
    """The chosen events that share a value, and the sessions that hold them.

    Attributes:
        events (int): The events.
        pageviews (int): The pageviews.
        previous (None | PreviousRow):
        sessions (int): The sessions that began in the window and hold one of the events. One that holds two values is
            in both rows.
        unique_users (int): The distinct users.
        value (bool | float | None | str):
        orders (int | Unset): How many orders.
        revenue (float | Unset):
    """

    events: int
    pageviews: int
    previous: None | PreviousRow
    sessions: int
    unique_users: int
    value: bool | float | None | str
    orders: int | Unset = UNSET
    revenue: float | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.previous_row import PreviousRow

        events = self.events

        pageviews = self.pageviews

        previous: dict[str, Any] | None
        if isinstance(self.previous, PreviousRow):
            previous = self.previous.to_dict()
        else:
            previous = self.previous

        sessions = self.sessions

        unique_users = self.unique_users

        value: bool | float | None | str
        value = self.value

        orders = self.orders

        revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "events": events,
                "pageviews": pageviews,
                "previous": previous,
                "sessions": sessions,
                "unique_users": unique_users,
                "value": value,
            }
        )
        if orders is not UNSET:
            field_dict["orders"] = orders
        if revenue is not UNSET:
            field_dict["revenue"] = revenue

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.previous_row import PreviousRow

        d = dict(src_dict)
        events = d.pop("events")

        pageviews = d.pop("pageviews")

        def _parse_previous(data: object) -> None | PreviousRow:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                previous_type_0 = PreviousRow.from_dict(data)

                return previous_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PreviousRow, data)

        previous = _parse_previous(d.pop("previous"))

        sessions = d.pop("sessions")

        unique_users = d.pop("unique_users")

        def _parse_value(data: object) -> bool | float | None | str:
            if data is None:
                return data
            return cast(bool | float | None | str, data)

        value = _parse_value(d.pop("value"))

        orders = d.pop("orders", UNSET)

        revenue = d.pop("revenue", UNSET)

        figures_row = cls(
            events=events,
            pageviews=pageviews,
            previous=previous,
            sessions=sessions,
            unique_users=unique_users,
            value=value,
            orders=orders,
            revenue=revenue,
        )

        return figures_row
