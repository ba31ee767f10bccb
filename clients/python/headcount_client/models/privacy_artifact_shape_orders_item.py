from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="PrivacyArtifactShapeOrdersItem")


@_attrs_define
class PrivacyArtifactShapeOrdersItem:
    """An order or a refund.

    Attributes:
        amount (float | None): The money in the project's currency.
        at (datetime.datetime): When it happened.
        counted (bool): Whether the money counts.
        currency (str): Its currency.
        event_id (str): The event's id.
        kind (str): `order` or `refund`.
        project_id (str): Its project.
        value (float): The money, as it was sent.
    """

    amount: float | None
    at: datetime.datetime
    counted: bool
    currency: str
    event_id: str
    kind: str
    project_id: str
    value: float

    def to_dict(self) -> dict[str, Any]:
        amount: float | None
        amount = self.amount

        at = self.at.isoformat()

        counted = self.counted

        currency = self.currency

        event_id = self.event_id

        kind = self.kind

        project_id = self.project_id

        value = self.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "amount": amount,
                "at": at,
                "counted": counted,
                "currency": currency,
                "event_id": event_id,
                "kind": kind,
                "project_id": project_id,
                "value": value,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_amount(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        amount = _parse_amount(d.pop("amount"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        counted = d.pop("counted")

        currency = d.pop("currency")

        event_id = d.pop("event_id")

        kind = d.pop("kind")

        project_id = d.pop("project_id")

        value = d.pop("value")

        privacy_artifact_shape_orders_item = cls(
            amount=amount,
            at=at,
            counted=counted,
            currency=currency,
            event_id=event_id,
            kind=kind,
            project_id=project_id,
            value=value,
        )

        return privacy_artifact_shape_orders_item
