from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.new_project_shape_bots import NewProjectShapeBots
from ..models.new_project_shape_signals_policy import NewProjectShapeSignalsPolicy
from ..types import UNSET, Unset

T = TypeVar("T", bound="NewProjectShape")


@_attrs_define
class NewProjectShape:
    """A project to be made.

    Example:
        {'allowed_origins': ['https://shop.example'], 'currency': 'EUR', 'name': 'Shop'}

    Attributes:
        name (str): Its name.
        allowed_origins (list[str] | None | Unset): Which web origins may send events, such as `https://example.com`;
            empty: any. Default: empty.
        bots (NewProjectShapeBots | Unset): The policy for events of crawlers, monitors and previewers.
        cookieless (bool | None | Unset): Whether visitors without ids are distinguished by a daily hash. Default: true.
        currency (None | str | Unset): The currency of its figures: an ISO 4217 code of any case. Default: USD.
        ignored_referrers (list[str] | None | Unset): Other hosts that are no referrers, each with its subdomains: tills
            and sign-in pages that the server doesn't know. Default: empty.
        own_domains (list[str] | None | Unset): Hosts of its own sites, each with its subdomains: links from there are
            no referrers. Links within one registrable domain never are. Default: empty.
        retention_days (int | None | Unset): For how many days events are kept, today included. Default: for ever.
        server_only_revenue (bool | None | Unset): Whether money sent with a public key is kept on the event and not
            counted. Default: false.
        signals_policy (NewProjectShapeSignalsPolicy | Unset): The policy for events that carry a privacy signal.
    """

    name: str
    allowed_origins: list[str] | None | Unset = UNSET
    bots: NewProjectShapeBots | Unset = UNSET
    cookieless: bool | None | Unset = UNSET
    currency: None | str | Unset = UNSET
    ignored_referrers: list[str] | None | Unset = UNSET
    own_domains: list[str] | None | Unset = UNSET
    retention_days: int | None | Unset = UNSET
    server_only_revenue: bool | None | Unset = UNSET
    signals_policy: NewProjectShapeSignalsPolicy | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        allowed_origins: list[str] | None | Unset
        if isinstance(self.allowed_origins, Unset):
            allowed_origins = UNSET
        elif isinstance(self.allowed_origins, list):
            allowed_origins = self.allowed_origins

        else:
            allowed_origins = self.allowed_origins

        bots: str | Unset = UNSET
        if not isinstance(self.bots, Unset):
            bots = self.bots.value

        cookieless: bool | None | Unset
        if isinstance(self.cookieless, Unset):
            cookieless = UNSET
        else:
            cookieless = self.cookieless

        currency: None | str | Unset
        if isinstance(self.currency, Unset):
            currency = UNSET
        else:
            currency = self.currency

        ignored_referrers: list[str] | None | Unset
        if isinstance(self.ignored_referrers, Unset):
            ignored_referrers = UNSET
        elif isinstance(self.ignored_referrers, list):
            ignored_referrers = self.ignored_referrers

        else:
            ignored_referrers = self.ignored_referrers

        own_domains: list[str] | None | Unset
        if isinstance(self.own_domains, Unset):
            own_domains = UNSET
        elif isinstance(self.own_domains, list):
            own_domains = self.own_domains

        else:
            own_domains = self.own_domains

        retention_days: int | None | Unset
        if isinstance(self.retention_days, Unset):
            retention_days = UNSET
        else:
            retention_days = self.retention_days

        server_only_revenue: bool | None | Unset
        if isinstance(self.server_only_revenue, Unset):
            server_only_revenue = UNSET
        else:
            server_only_revenue = self.server_only_revenue

        signals_policy: str | Unset = UNSET
        if not isinstance(self.signals_policy, Unset):
            signals_policy = self.signals_policy.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if allowed_origins is not UNSET:
            field_dict["allowed_origins"] = allowed_origins
        if bots is not UNSET:
            field_dict["bots"] = bots
        if cookieless is not UNSET:
            field_dict["cookieless"] = cookieless
        if currency is not UNSET:
            field_dict["currency"] = currency
        if ignored_referrers is not UNSET:
            field_dict["ignored_referrers"] = ignored_referrers
        if own_domains is not UNSET:
            field_dict["own_domains"] = own_domains
        if retention_days is not UNSET:
            field_dict["retention_days"] = retention_days
        if server_only_revenue is not UNSET:
            field_dict["server_only_revenue"] = server_only_revenue
        if signals_policy is not UNSET:
            field_dict["signals_policy"] = signals_policy

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        def _parse_allowed_origins(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                allowed_origins_type_0 = cast(list[str], data)

                return allowed_origins_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        allowed_origins = _parse_allowed_origins(d.pop("allowed_origins", UNSET))

        _bots = d.pop("bots", UNSET)
        bots: NewProjectShapeBots | Unset
        if isinstance(_bots, Unset):
            bots = UNSET
        else:
            bots = NewProjectShapeBots(_bots)

        def _parse_cookieless(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        cookieless = _parse_cookieless(d.pop("cookieless", UNSET))

        def _parse_currency(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        currency = _parse_currency(d.pop("currency", UNSET))

        def _parse_ignored_referrers(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                ignored_referrers_type_0 = cast(list[str], data)

                return ignored_referrers_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        ignored_referrers = _parse_ignored_referrers(d.pop("ignored_referrers", UNSET))

        def _parse_own_domains(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                own_domains_type_0 = cast(list[str], data)

                return own_domains_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        own_domains = _parse_own_domains(d.pop("own_domains", UNSET))

        def _parse_retention_days(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        retention_days = _parse_retention_days(d.pop("retention_days", UNSET))

        def _parse_server_only_revenue(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        server_only_revenue = _parse_server_only_revenue(
            d.pop("server_only_revenue", UNSET)
        )

        _signals_policy = d.pop("signals_policy", UNSET)
        signals_policy: NewProjectShapeSignalsPolicy | Unset
        if isinstance(_signals_policy, Unset):
            signals_policy = UNSET
        else:
            signals_policy = NewProjectShapeSignalsPolicy(_signals_policy)

        new_project_shape = cls(
            name=name,
            allowed_origins=allowed_origins,
            bots=bots,
            cookieless=cookieless,
            currency=currency,
            ignored_referrers=ignored_referrers,
            own_domains=own_domains,
            retention_days=retention_days,
            server_only_revenue=server_only_revenue,
            signals_policy=signals_policy,
        )

        return new_project_shape
