from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="AttributionRow")


@_attrs_define
class AttributionRow:
    """Revenue under one source, medium or campaign.

    Attributes:
        dimension (str): The source, medium or campaign.
        orders (int): How many orders.
        revenue (float):
    """

    dimension: str
    orders: int
    revenue: float

    def to_dict(self) -> dict[str, Any]:
        dimension = self.dimension

        orders = self.orders

        revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "dimension": dimension,
                "orders": orders,
                "revenue": revenue,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        dimension = d.pop("dimension")

        orders = d.pop("orders")

        revenue = d.pop("revenue")

        attribution_row = cls(
            dimension=dimension,
            orders=orders,
            revenue=revenue,
        )

        return attribution_row
