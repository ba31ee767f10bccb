from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CohortRow")


@_attrs_define
class CohortRow:
    """Those who were first seen in one month.

    Attributes:
        cohort (str): The month, `YYYY-MM`.
        entities (int): How many accounts or identities, paying or not.
        ltv (float):
        orders (int): How many orders, of all time.
        revenue (float):
    """

    cohort: str
    entities: int
    ltv: float
    orders: int
    revenue: float

    def to_dict(self) -> dict[str, Any]:
        cohort = self.cohort

        entities = self.entities

        ltv = self.ltv

        orders = self.orders

        revenue = self.revenue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cohort": cohort,
                "entities": entities,
                "ltv": ltv,
                "orders": orders,
                "revenue": revenue,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        cohort = d.pop("cohort")

        entities = d.pop("entities")

        ltv = d.pop("ltv")

        orders = d.pop("orders")

        revenue = d.pop("revenue")

        cohort_row = cls(
            cohort=cohort,
            entities=entities,
            ltv=ltv,
            orders=orders,
            revenue=revenue,
        )

        return cohort_row
