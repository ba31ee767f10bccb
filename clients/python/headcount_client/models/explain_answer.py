from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.contributing_event import ContributingEvent
    from ..models.uncounted_event import UncountedEvent


T = TypeVar("T", bound="ExplainAnswer")


@_attrs_define
class ExplainAnswer:
    """Why a figure is what it is.

    Attributes:
        end_date (str): The last day.
        next_ (None | str): The cursor of the next page; null when both lists are done.
        not_counted (list[UncountedEvent]): Chosen events that are not counted, in the same order.
        position (int):
        result (float):
        rows (list[ContributingEvent]): The events that contribute, the latest first; of one instant, the last recorded
            one first.
        start_date (str): The first day.
        timezone (str): The timezone of the days.
        currency (str | Unset): The project's currency, in which money contributes. Absent if the token may not see
            money.
    """

    end_date: str
    next_: None | str
    not_counted: list[UncountedEvent]
    position: int
    result: float
    rows: list[ContributingEvent]
    start_date: str
    timezone: str
    currency: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        end_date = self.end_date

        next_: None | str
        next_ = self.next_

        not_counted = []
        for not_counted_item_data in self.not_counted:
            not_counted_item = not_counted_item_data.to_dict()
            not_counted.append(not_counted_item)

        position = self.position

        result = self.result

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        start_date = self.start_date

        timezone = self.timezone

        currency = self.currency

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "end_date": end_date,
                "next": next_,
                "not_counted": not_counted,
                "position": position,
                "result": result,
                "rows": rows,
                "start_date": start_date,
                "timezone": timezone,
            }
        )
        if currency is not UNSET:
            field_dict["currency"] = currency

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.contributing_event import ContributingEvent
        from ..models.uncounted_event import UncountedEvent

        d = dict(src_dict)
        end_date = d.pop("end_date")

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        not_counted = []
        _not_counted = d.pop("not_counted")
        for not_counted_item_data in _not_counted:
            not_counted_item = UncountedEvent.from_dict(not_counted_item_data)

            not_counted.append(not_counted_item)

        position = d.pop("position")

        result = d.pop("result")

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = ContributingEvent.from_dict(rows_item_data)

            rows.append(rows_item)

        start_date = d.pop("start_date")

        timezone = d.pop("timezone")

        currency = d.pop("currency", UNSET)

        explain_answer = cls(
            end_date=end_date,
            next_=next_,
            not_counted=not_counted,
            position=position,
            result=result,
            rows=rows,
            start_date=start_date,
            timezone=timezone,
            currency=currency,
        )

        return explain_answer
