from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.metrics_answer_unconverted import MetricsAnswerUnconverted


T = TypeVar("T", bound="MetricsAnswer")


@_attrs_define
class MetricsAnswer:
    """Revenue of a window.

    Attributes:
        aov (float):
        arpa (float):
        arpu (float):
        currency (str): The currency of all amounts: the project's.
        orders (int): How many orders.
        total_revenue (float):
        unconverted (MetricsAnswerUnconverted): Money that the figures leave out because its currency had no rate, by
            currency.
    """

    aov: float
    arpa: float
    arpu: float
    currency: str
    orders: int
    total_revenue: float
    unconverted: MetricsAnswerUnconverted

    def to_dict(self) -> dict[str, Any]:
        aov = self.aov

        arpa = self.arpa

        arpu = self.arpu

        currency = self.currency

        orders = self.orders

        total_revenue = self.total_revenue

        unconverted = self.unconverted.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "aov": aov,
                "arpa": arpa,
                "arpu": arpu,
                "currency": currency,
                "orders": orders,
                "total_revenue": total_revenue,
                "unconverted": unconverted,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.metrics_answer_unconverted import MetricsAnswerUnconverted

        d = dict(src_dict)
        aov = d.pop("aov")

        arpa = d.pop("arpa")

        arpu = d.pop("arpu")

        currency = d.pop("currency")

        orders = d.pop("orders")

        total_revenue = d.pop("total_revenue")

        unconverted = MetricsAnswerUnconverted.from_dict(d.pop("unconverted"))

        metrics_answer = cls(
            aov=aov,
            arpa=arpa,
            arpu=arpu,
            currency=currency,
            orders=orders,
            total_revenue=total_revenue,
            unconverted=unconverted,
        )

        return metrics_answer
