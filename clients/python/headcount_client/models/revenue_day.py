from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="RevenueDay")


@_attrs_define
class RevenueDay:
    """One day's revenue.

    Attributes:
        day (str): The day, `YYYY-MM-DD`.
        orders (int): How many orders.
        revenue (float):
    """

    day: str
    orders: int
    revenue: float

    def to_dict(self) -> dict[str, Any]:
        day = self.day

        orders = self.orders

        revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "day": day,
                "orders": orders,
                "revenue": revenue,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        day = d.pop("day")

        orders = d.pop("orders")

        revenue = d.pop("revenue")

        revenue_day = cls(
            day=day,
            orders=orders,
            revenue=revenue,
        )

        return revenue_day
