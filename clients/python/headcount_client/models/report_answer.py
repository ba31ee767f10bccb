from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.bucket_figures import BucketFigures
    from ..models.previous_figures import PreviousFigures
    from ..models.report_answer_unconverted import ReportAnswerUnconverted
    from ..models.total_figures import TotalFigures


T = TypeVar("T", bound="ReportAnswer")


@_attrs_define
class ReportAnswer:
    """The figures of a window by time. Money is there if the token may see it.

    Attributes:
        end_date (str): The last day.
        interval (str): The length of the buckets.
        previous (None | PreviousFigures):
        series (list[BucketFigures]): Every bucket that touches the window. They count the days of the window only.
        start_date (str): The first day.
        timezone (str): The timezone of the days.
        totals (TotalFigures): The figures of chosen events, and of the sessions that hold them.
        currency (str | Unset): The currency of all amounts: the project's.
        unconverted (ReportAnswerUnconverted | Unset): Money of the window that the figures leave out because its
            currency had no rate, by currency.
    """

    end_date: str
    interval: str
    previous: None | PreviousFigures
    series: list[BucketFigures]
    start_date: str
    timezone: str
    totals: TotalFigures
    currency: str | Unset = UNSET
    unconverted: ReportAnswerUnconverted | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.previous_figures import PreviousFigures

        end_date = self.end_date

        interval = self.interval

        previous: dict[str, Any] | None
        if isinstance(self.previous, PreviousFigures):
            previous = self.previous.to_dict()
        else:
            previous = self.previous

        series = []
        for series_item_data in self.series:
            series_item = series_item_data.to_dict()
            series.append(series_item)

        start_date = self.start_date

        timezone = self.timezone

        totals = self.totals.to_dict()

        currency = self.currency

        unconverted: dict[str, Any] | Unset = UNSET
        if not isinstance(self.unconverted, Unset):
            unconverted = self.unconverted.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "end_date": end_date,
                "interval": interval,
                "previous": previous,
                "series": series,
                "start_date": start_date,
                "timezone": timezone,
                "totals": totals,
            }
        )
        if currency is not UNSET:
            field_dict["currency"] = currency
        if unconverted is not UNSET:
            field_dict["unconverted"] = unconverted

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.bucket_figures import BucketFigures
        from ..models.previous_figures import PreviousFigures
        from ..models.report_answer_unconverted import ReportAnswerUnconverted
        from ..models.total_figures import TotalFigures

        d = dict(src_dict)
        end_date = d.pop("end_date")

        interval = d.pop("interval")

        def _parse_previous(data: object) -> None | PreviousFigures:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                previous_type_0 = PreviousFigures.from_dict(data)

                return previous_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PreviousFigures, data)

        previous = _parse_previous(d.pop("previous"))

        series = []
        _series = d.pop("series")
        for series_item_data in _series:
            series_item = BucketFigures.from_dict(series_item_data)

            series.append(series_item)

        start_date = d.pop("start_date")

        timezone = d.pop("timezone")

        totals = TotalFigures.from_dict(d.pop("totals"))

        currency = d.pop("currency", UNSET)

        _unconverted = d.pop("unconverted", UNSET)
        unconverted: ReportAnswerUnconverted | Unset
        if isinstance(_unconverted, Unset):
            unconverted = UNSET
        else:
            unconverted = ReportAnswerUnconverted.from_dict(_unconverted)

        report_answer = cls(
            end_date=end_date,
            interval=interval,
            previous=previous,
            series=series,
            start_date=start_date,
            timezone=timezone,
            totals=totals,
            currency=currency,
            unconverted=unconverted,
        )

        return report_answer
