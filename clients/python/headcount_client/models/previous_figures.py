from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.bucket_figures import BucketFigures
    from ..models.total_figures import TotalFigures


T = TypeVar("T", bound="PreviousFigures")


@_attrs_define
class PreviousFigures:
    """The figures of the window that is compared with.

    Attributes:
        end_date (str): The last day.
        series (list[BucketFigures]): Its buckets.
        start_date (str): The first day.
        totals (TotalFigures): The figures of chosen events, and of the sessions that hold them.
    """

    end_date: str
    series: list[BucketFigures]
    start_date: str
    totals: TotalFigures

    def to_dict(self) -> dict[str, Any]:
        end_date = self.end_date

        series = []
        for series_item_data in self.series:
            series_item = series_item_data.to_dict()
            series.append(series_item)

        start_date = self.start_date

        totals = self.totals.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "end_date": end_date,
                "series": series,
                "start_date": start_date,
                "totals": totals,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.bucket_figures import BucketFigures
        from ..models.total_figures import TotalFigures

        d = dict(src_dict)
        end_date = d.pop("end_date")

        series = []
        _series = d.pop("series")
        for series_item_data in _series:
            series_item = BucketFigures.from_dict(series_item_data)

            series.append(series_item)

        start_date = d.pop("start_date")

        totals = TotalFigures.from_dict(d.pop("totals"))

        previous_figures = cls(
            end_date=end_date,
            series=series,
            start_date=start_date,
            totals=totals,
        )

        return previous_figures
