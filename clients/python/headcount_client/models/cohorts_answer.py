from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.cohort_row import CohortRow
    from ..models.cohorts_answer_unconverted import CohortsAnswerUnconverted


T = TypeVar("T", bound="CohortsAnswer")


@_attrs_define
class CohortsAnswer:
    """Lifetime value by month of first sight.

    Attributes:
        cohorts (list[CohortRow]): The newest month first.
        currency (str): The currency of all amounts: the project's.
        truncated (bool): Whether there are more cohorts.
        unconverted (CohortsAnswerUnconverted): Money that the figures leave out because its currency had no rate, by
            currency.
    """

    cohorts: list[CohortRow]
    currency: str
    truncated: bool
    unconverted: CohortsAnswerUnconverted

    def to_dict(self) -> dict[str, Any]:
        cohorts = []
        for cohorts_item_data in self.cohorts:
            cohorts_item = cohorts_item_data.to_dict()
            cohorts.append(cohorts_item)

        currency = self.currency

        truncated = self.truncated

        unconverted = self.unconverted.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cohorts": cohorts,
                "currency": currency,
                "truncated": truncated,
                "unconverted": unconverted,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.cohort_row import CohortRow
        from ..models.cohorts_answer_unconverted import CohortsAnswerUnconverted

        d = dict(src_dict)
        cohorts = []
        _cohorts = d.pop("cohorts")
        for cohorts_item_data in _cohorts:
            cohorts_item = CohortRow.from_dict(cohorts_item_data)

            cohorts.append(cohorts_item)

        currency = d.pop("currency")

        truncated = d.pop("truncated")

        unconverted = CohortsAnswerUnconverted.from_dict(d.pop("unconverted"))

        cohorts_answer = cls(
            cohorts=cohorts,
            currency=currency,
            truncated=truncated,
            unconverted=unconverted,
        )

        return cohorts_answer
