from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="UnconvertedMoney")


@_attrs_define
class UnconvertedMoney:
    """Money in a currency that had no rate when it was recorded.

    Attributes:
        orders (int): How many orders.
        revenue (float):
    """

    orders: int
    revenue: float

    def to_dict(self) -> dict[str, Any]:
        orders = self.orders

        revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "orders": orders,
                "revenue": revenue,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        orders = d.pop("orders")

        revenue = d.pop("revenue")

        unconverted_money = cls(
            orders=orders,
            revenue=revenue,
        )

        return unconverted_money
