from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.delivery_answer import DeliveryAnswer


T = TypeVar("T", bound="DeliveriesAnswer")


@_attrs_define
class DeliveriesAnswer:
    """A part of the deliveries.

    Attributes:
        deliveries (list[DeliveryAnswer]): The deliveries, latest first.
        truncated (bool): Whether earlier ones follow.
    """

    deliveries: list[DeliveryAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        deliveries = []
        for deliveries_item_data in self.deliveries:
            deliveries_item = deliveries_item_data.to_dict()
            deliveries.append(deliveries_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "deliveries": deliveries,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.delivery_answer import DeliveryAnswer

        d = dict(src_dict)
        deliveries = []
        _deliveries = d.pop("deliveries")
        for deliveries_item_data in _deliveries:
            deliveries_item = DeliveryAnswer.from_dict(deliveries_item_data)

            deliveries.append(deliveries_item)

        truncated = d.pop("truncated")

        deliveries_answer = cls(
            deliveries=deliveries,
            truncated=truncated,
        )

        return deliveries_answer
