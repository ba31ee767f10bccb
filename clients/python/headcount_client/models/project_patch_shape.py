from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.project_patch_shape_bots import ProjectPatchShapeBots
from ..models.project_patch_shape_signals_policy import ProjectPatchShapeSignalsPolicy
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.project_patch_shape_quotas import ProjectPatchShapeQuotas


T = TypeVar("T", bound="ProjectPatchShape")


@_attrs_define
class ProjectPatchShape:
    """A change of a project: absent fields stay unchanged.

    Example:
        {'bots': 'record', 'name': 'Shop'}

    Attributes:
        quotas (ProjectPatchShapeQuotas): The quotas to change. Absent ones stay unchanged.
        allowed_origins (list[str] | None | Unset): Replaces the whole list.
        bots (ProjectPatchShapeBots | Unset): The policy for events of crawlers, monitors and previewers.
        burst (int | None | Unset): How many may be sent at once after a pause, at least 1 where there is a limit.
            Default: as many as `rate_limit`.
        cookieless (bool | None | Unset): Whether visitors without ids are distinguished by a daily hash.
        currency (None | str | Unset): Another currency, as long as the project has recorded no event.
        ignored_referrers (list[str] | None | Unset): Replaces the whole list of other hosts that are no referrers. It
            holds for events that are recorded from then on.
        name (None | str | Unset): Another name.
        own_domains (list[str] | None | Unset): Replaces the whole list of hosts of its own sites. It holds for events
            that are recorded from then on.
        rate_limit (int | None | Unset): How many events a second may be sent with its public keys together; 0: no
            limit, and no burst.
        retention_days (int | None | Unset): For how many days events are kept, today included; null: for ever. Events
            that are gone don't come back.
        server_only_revenue (bool | None | Unset): Whether money sent with a public key is kept on the event and not
            counted.
        signals_policy (ProjectPatchShapeSignalsPolicy | Unset): The policy for events that carry a privacy signal.
    """

    quotas: ProjectPatchShapeQuotas
    allowed_origins: list[str] | None | Unset = UNSET
    bots: ProjectPatchShapeBots | Unset = UNSET
    burst: int | None | Unset = UNSET
    cookieless: bool | None | Unset = UNSET
    currency: None | str | Unset = UNSET
    ignored_referrers: list[str] | None | Unset = UNSET
    name: None | str | Unset = UNSET
    own_domains: list[str] | None | Unset = UNSET
    rate_limit: int | None | Unset = UNSET
    retention_days: int | None | Unset = UNSET
    server_only_revenue: bool | None | Unset = UNSET
    signals_policy: ProjectPatchShapeSignalsPolicy | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        quotas = self.quotas.to_dict()

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

        burst: int | None | Unset
        if isinstance(self.burst, Unset):
            burst = UNSET
        else:
            burst = self.burst

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

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        own_domains: list[str] | None | Unset
        if isinstance(self.own_domains, Unset):
            own_domains = UNSET
        elif isinstance(self.own_domains, list):
            own_domains = self.own_domains

        else:
            own_domains = self.own_domains

        rate_limit: int | None | Unset
        if isinstance(self.rate_limit, Unset):
            rate_limit = UNSET
        else:
            rate_limit = self.rate_limit

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
                "quotas": quotas,
            }
        )
        if allowed_origins is not UNSET:
            field_dict["allowed_origins"] = allowed_origins
        if bots is not UNSET:
            field_dict["bots"] = bots
        if burst is not UNSET:
            field_dict["burst"] = burst
        if cookieless is not UNSET:
            field_dict["cookieless"] = cookieless
        if currency is not UNSET:
            field_dict["currency"] = currency
        if ignored_referrers is not UNSET:
            field_dict["ignored_referrers"] = ignored_referrers
        if name is not UNSET:
            field_dict["name"] = name
        if own_domains is not UNSET:
            field_dict["own_domains"] = own_domains
        if rate_limit is not UNSET:
            field_dict["rate_limit"] = rate_limit
        if retention_days is not UNSET:
            field_dict["retention_days"] = retention_days
        if server_only_revenue is not UNSET:
            field_dict["server_only_revenue"] = server_only_revenue
        if signals_policy is not UNSET:
            field_dict["signals_policy"] = signals_policy

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.project_patch_shape_quotas import ProjectPatchShapeQuotas

        d = dict(src_dict)
        quotas = ProjectPatchShapeQuotas.from_dict(d.pop("quotas"))

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
        bots: ProjectPatchShapeBots | Unset
        if isinstance(_bots, Unset):
            bots = UNSET
        else:
            bots = ProjectPatchShapeBots(_bots)

        def _parse_burst(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        burst = _parse_burst(d.pop("burst", UNSET))

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

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

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

        def _parse_rate_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        rate_limit = _parse_rate_limit(d.pop("rate_limit", UNSET))

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
        signals_policy: ProjectPatchShapeSignalsPolicy | Unset
        if isinstance(_signals_policy, Unset):
            signals_policy = UNSET
        else:
            signals_policy = ProjectPatchShapeSignalsPolicy(_signals_policy)

        project_patch_shape = cls(
            quotas=quotas,
            allowed_origins=allowed_origins,
            bots=bots,
            burst=burst,
            cookieless=cookieless,
            currency=currency,
            ignored_referrers=ignored_referrers,
            name=name,
            own_domains=own_domains,
            rate_limit=rate_limit,
            retention_days=retention_days,
            server_only_revenue=server_only_revenue,
            signals_policy=signals_policy,
        )

        return project_patch_shape
