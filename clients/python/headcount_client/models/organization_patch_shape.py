from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.organization_patch_shape_capabilities_item import (
    OrganizationPatchShapeCapabilitiesItem,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.organization_patch_shape_fx_rates import OrganizationPatchShapeFxRates


T = TypeVar("T", bound="OrganizationPatchShape")


@_attrs_define
class OrganizationPatchShape:
    """A change of the organization: absent fields stay unchanged.

    Example:
        {'fx_rates': {'EUR': 1.08}, 'name': 'Acme', 'timezone': 'Europe/Berlin'}

    Attributes:
        actions_balance (int | None | Unset): How many Actions are left.
        capabilities (list[OrganizationPatchShapeCapabilitiesItem] | Unset): The optional features that the organization
            may use.
        currency (None | str | Unset): Another currency for figures over several projects, as long as no event was
            recorded.
        fx_rates (OrganizationPatchShapeFxRates | Unset): The worth of one unit of each currency in USD. USD itself is
            1, and not shown.
        name (None | str | Unset): Another name.
        timezone (None | str | Unset): Another timezone, by its IANA name, as long as no event was recorded.
    """

    actions_balance: int | None | Unset = UNSET
    capabilities: list[OrganizationPatchShapeCapabilitiesItem] | Unset = UNSET
    currency: None | str | Unset = UNSET
    fx_rates: OrganizationPatchShapeFxRates | Unset = UNSET
    name: None | str | Unset = UNSET
    timezone: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        actions_balance: int | None | Unset
        if isinstance(self.actions_balance, Unset):
            actions_balance = UNSET
        else:
            actions_balance = self.actions_balance

        capabilities: list[str] | Unset = UNSET
        if not isinstance(self.capabilities, Unset):
            capabilities = []
            for capabilities_item_data in self.capabilities:
                capabilities_item = capabilities_item_data.value
                capabilities.append(capabilities_item)

        currency: None | str | Unset
        if isinstance(self.currency, Unset):
            currency = UNSET
        else:
            currency = self.currency

        fx_rates: dict[str, Any] | Unset = UNSET
        if not isinstance(self.fx_rates, Unset):
            fx_rates = self.fx_rates.to_dict()

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        timezone: None | str | Unset
        if isinstance(self.timezone, Unset):
            timezone = UNSET
        else:
            timezone = self.timezone

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if actions_balance is not UNSET:
            field_dict["actions_balance"] = actions_balance
        if capabilities is not UNSET:
            field_dict["capabilities"] = capabilities
        if currency is not UNSET:
            field_dict["currency"] = currency
        if fx_rates is not UNSET:
            field_dict["fx_rates"] = fx_rates
        if name is not UNSET:
            field_dict["name"] = name
        if timezone is not UNSET:
            field_dict["timezone"] = timezone

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.organization_patch_shape_fx_rates import (
            OrganizationPatchShapeFxRates,
        )

        d = dict(src_dict)

        def _parse_actions_balance(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        actions_balance = _parse_actions_balance(d.pop("actions_balance", UNSET))

        _capabilities = d.pop("capabilities", UNSET)
        capabilities: list[OrganizationPatchShapeCapabilitiesItem] | Unset = UNSET
        if _capabilities is not UNSET:
            capabilities = []
            for capabilities_item_data in _capabilities:
                capabilities_item = OrganizationPatchShapeCapabilitiesItem(
                    capabilities_item_data
                )

                capabilities.append(capabilities_item)

        def _parse_currency(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        currency = _parse_currency(d.pop("currency", UNSET))

        _fx_rates = d.pop("fx_rates", UNSET)
        fx_rates: OrganizationPatchShapeFxRates | Unset
        if isinstance(_fx_rates, Unset):
            fx_rates = UNSET
        else:
            fx_rates = OrganizationPatchShapeFxRates.from_dict(_fx_rates)

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_timezone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        timezone = _parse_timezone(d.pop("timezone", UNSET))

        organization_patch_shape = cls(
            actions_balance=actions_balance,
            capabilities=capabilities,
            currency=currency,
            fx_rates=fx_rates,
            name=name,
            timezone=timezone,
        )

        return organization_patch_shape
