from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.breakdown_answer_unconverted import BreakdownAnswerUnconverted
    from ..models.figures_row import FiguresRow
    from ..models.previous_window import PreviousWindow


T = TypeVar("T", bound="BreakdownAnswer")


@_attrs_define
class BreakdownAnswer:
    """The figures of a window by the values of a property. Money is there if the token may see it.

    Attributes:
        dimension (str): The property.
        end_date (str): The last day.
        previous (None | PreviousWindow):
        rows (list[FiguresRow]): The rows, by `order_by`, descending. Among equals, null is last.
        start_date (str): The first day.
        timezone (str): The timezone of the days.
        total_rows (int): The number of all rows that match `search`.
        truncated (bool): Whether there are more rows than these.
        currency (str | Unset): The currency of all amounts: the project's.
        unconverted (BreakdownAnswerUnconverted | Unset): Money of the window that the figures leave out because its
            currency had no rate, by currency.
    """

    dimension: str
    end_date: str
    previous: None | PreviousWindow
    rows: list[FiguresRow]
    start_date: str
    timezone: str
    total_rows: int
    truncated: bool
    currency: str | Unset = UNSET
    unconverted: BreakdownAnswerUnconverted | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.previous_window import PreviousWindow

        dimension = self.dimension

        end_date = self.end_date

        previous: dict[str, Any] | None
        if isinstance(self.previous, PreviousWindow):
            previous = self.previous.to_dict()
        else:
            previous = self.previous

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        start_date = self.start_date

        timezone = self.timezone

        total_rows = self.total_rows

        truncated = self.truncated

        currency = self.currency

        unconverted: dict[str, Any] | Unset = UNSET
        if not isinstance(self.unconverted, Unset):
            unconverted = self.unconverted.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "dimension": dimension,
                "end_date": end_date,
                "previous": previous,
                "rows": rows,
                "start_date": start_date,
                "timezone": timezone,
                "total_rows": total_rows,
                "truncated": truncated,
            }
        )
        if currency is not UNSET:
            field_dict["currency"] = currency
        if unconverted is not UNSET:
            field_dict["unconverted"] = unconverted

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.breakdown_answer_unconverted import BreakdownAnswerUnconverted
        from ..models.figures_row import FiguresRow
        from ..models.previous_window import PreviousWindow

        d = dict(src_dict)
        dimension = d.pop("dimension")

        end_date = d.pop("end_date")

        def _parse_previous(data: object) -> None | PreviousWindow:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                previous_type_0 = PreviousWindow.from_dict(data)

                return previous_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PreviousWindow, data)

        previous = _parse_previous(d.pop("previous"))

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = FiguresRow.from_dict(rows_item_data)

            rows.append(rows_item)

        start_date = d.pop("start_date")

        timezone = d.pop("timezone")

        total_rows = d.pop("total_rows")

        truncated = d.pop("truncated")

        currency = d.pop("currency", UNSET)

        _unconverted = d.pop("unconverted", UNSET)
        unconverted: BreakdownAnswerUnconverted | Unset
        if isinstance(_unconverted, Unset):
            unconverted = UNSET
        else:
            unconverted = BreakdownAnswerUnconverted.from_dict(_unconverted)

        breakdown_answer = cls(
            dimension=dimension,
            end_date=end_date,
            previous=previous,
            rows=rows,
            start_date=start_date,
            timezone=timezone,
            total_rows=total_rows,
            truncated=truncated,
            currency=currency,
            unconverted=unconverted,
        )

        return breakdown_answer
