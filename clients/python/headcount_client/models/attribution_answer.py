from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.attribution_answer_unconverted import AttributionAnswerUnconverted
    from ..models.attribution_row import AttributionRow


T = TypeVar("T", bound="AttributionAnswer")


@_attrs_define
class AttributionAnswer:
    """Revenue by what brought the buyers.

    Attributes:
        currency (str): The currency of all amounts: the project's.
        rows (list[AttributionRow]): By revenue, descending.
        truncated (bool): Whether there are more rows.
        unconverted (AttributionAnswerUnconverted): Money that the figures leave out because its currency had no rate,
            by currency.
    """

    currency: str
    rows: list[AttributionRow]
    truncated: bool
    unconverted: AttributionAnswerUnconverted

    def to_dict(self) -> dict[str, Any]:
        currency = self.currency

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        truncated = self.truncated

        unconverted = self.unconverted.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "currency": currency,
                "rows": rows,
                "truncated": truncated,
                "unconverted": unconverted,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.attribution_answer_unconverted import AttributionAnswerUnconverted
        from ..models.attribution_row import AttributionRow

        d = dict(src_dict)
        currency = d.pop("currency")

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = AttributionRow.from_dict(rows_item_data)

            rows.append(rows_item)

        truncated = d.pop("truncated")

        unconverted = AttributionAnswerUnconverted.from_dict(d.pop("unconverted"))

        attribution_answer = cls(
            currency=currency,
            rows=rows,
            truncated=truncated,
            unconverted=unconverted,
        )

        return attribution_answer
