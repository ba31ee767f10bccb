from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.revenue_day import RevenueDay
    from ..models.timeseries_answer_unconverted import TimeseriesAnswerUnconverted


T = TypeVar("T", bound="TimeseriesAnswer")


@_attrs_define
class TimeseriesAnswer:
    """Revenue by day.

    Attributes:
        currency (str): The currency of all amounts: the project's.
        series (list[RevenueDay]): Every day of the window.
        unconverted (TimeseriesAnswerUnconverted): Money that the figures leave out because its currency had no rate, by
            currency.
    """

    currency: str
    series: list[RevenueDay]
    unconverted: TimeseriesAnswerUnconverted

    def to_dict(self) -> dict[str, Any]:
        currency = self.currency

        series = []
        for series_item_data in self.series:
            series_item = series_item_data.to_dict()
            series.append(series_item)

        unconverted = self.unconverted.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "currency": currency,
                "series": series,
                "unconverted": unconverted,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.revenue_day import RevenueDay
        from ..models.timeseries_answer_unconverted import TimeseriesAnswerUnconverted

        d = dict(src_dict)
        currency = d.pop("currency")

        series = []
        _series = d.pop("series")
        for series_item_data in _series:
            series_item = RevenueDay.from_dict(series_item_data)

            series.append(series_item)

        unconverted = TimeseriesAnswerUnconverted.from_dict(d.pop("unconverted"))

        timeseries_answer = cls(
            currency=currency,
            series=series,
            unconverted=unconverted,
        )

        return timeseries_answer
