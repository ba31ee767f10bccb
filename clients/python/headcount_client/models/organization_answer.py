from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

from ..models.organization_answer_capabilities_item import (
    OrganizationAnswerCapabilitiesItem,
)

if TYPE_CHECKING:
    from ..models.organization_answer_fx_rates import OrganizationAnswerFxRates


T = TypeVar("T", bound="OrganizationAnswer")


@_attrs_define
class OrganizationAnswer:
    """An organization.

    Attributes:
        actions_balance (int): How many Actions are left.
        capabilities (list[OrganizationAnswerCapabilitiesItem]): The optional features that the organization may use.
        created_at (datetime.datetime):
        currency (str): The currency of figures over several projects.
        fx_rates (OrganizationAnswerFxRates): The worth of one unit of each currency in USD. USD itself is 1, and not
            shown.
        name (str): Its name.
        organization_id (str): Its id.
        timezone (str): The timezone of its days: an IANA name.
    """

    actions_balance: int
    capabilities: list[OrganizationAnswerCapabilitiesItem]
    created_at: datetime.datetime
    currency: str
    fx_rates: OrganizationAnswerFxRates
    name: str
    organization_id: str
    timezone: str

    def to_dict(self) -> dict[str, Any]:
        actions_balance = self.actions_balance

        capabilities = []
        for capabilities_item_data in self.capabilities:
            capabilities_item = capabilities_item_data.value
            capabilities.append(capabilities_item)

        created_at = self.created_at.isoformat()

        currency = self.currency

        fx_rates = self.fx_rates.to_dict()

        name = self.name

        organization_id = self.organization_id

        timezone = self.timezone

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "actions_balance": actions_balance,
                "capabilities": capabilities,
                "created_at": created_at,
                "currency": currency,
                "fx_rates": fx_rates,
                "name": name,
                "organization_id": organization_id,
                "timezone": timezone,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.organization_answer_fx_rates import OrganizationAnswerFxRates

        d = dict(src_dict)
        actions_balance = d.pop("actions_balance")

        capabilities = []
        _capabilities = d.pop("capabilities")
        for capabilities_item_data in _capabilities:
            capabilities_item = OrganizationAnswerCapabilitiesItem(
                capabilities_item_data
            )

            capabilities.append(capabilities_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        currency = d.pop("currency")

        fx_rates = OrganizationAnswerFxRates.from_dict(d.pop("fx_rates"))

        name = d.pop("name")

        organization_id = d.pop("organization_id")

        timezone = d.pop("timezone")

        organization_answer = cls(
            actions_balance=actions_balance,
            capabilities=capabilities,
            created_at=created_at,
            currency=currency,
            fx_rates=fx_rates,
            name=name,
            organization_id=organization_id,
            timezone=timezone,
        )

        return organization_answer
