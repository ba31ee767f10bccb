from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.project_answer_bots import ProjectAnswerBots
from ..models.project_answer_signals_policy import ProjectAnswerSignalsPolicy

if TYPE_CHECKING:
    from ..models.quotas_answer import QuotasAnswer


T = TypeVar("T", bound="ProjectAnswer")


@_attrs_define
class ProjectAnswer:
    """A project.

    Attributes:
        allowed_origins (list[str]): Which web origins may send events; empty: any.
        bots (ProjectAnswerBots): The policy for events of crawlers, monitors and previewers.
        burst (int): How many may be sent at once after a pause; 0: no limit.
        cookieless (bool): Whether visitors without ids are distinguished by a daily hash.
        created_at (datetime.datetime):
        currency (str): The currency of its figures.
        ignored_referrers (list[str]): Other hosts that are no referrers, each with its subdomains.
        name (str): Its name.
        own_domains (list[str]): Hosts of its own sites, each with its subdomains: links from there are no referrers.
        project_id (str): Its id.
        public_key (str): Its newest public key: the one to put into pages.
        public_keys (list[str]): All keys that are valid, oldest first.
        quotas (QuotasAnswer): How many different things a project may have over its lifetime. An event with one more is
            refused: 429 `quota_exceeded`.
        rate_limit (int): How many events a second may be sent with its public keys together; 0: no limit.
        retention_days (int | None): For how many days events are kept, today included; null: for ever.
        retention_floor (datetime.date | None): The first day of which events are kept; null: all days. It never falls.
        server_only_revenue (bool): Whether money sent with a public key is kept on the event and not counted.
        signals_policy (ProjectAnswerSignalsPolicy): The policy for events that carry a privacy signal.
    """

    allowed_origins: list[str]
    bots: ProjectAnswerBots
    burst: int
    cookieless: bool
    created_at: datetime.datetime
    currency: str
    ignored_referrers: list[str]
    name: str
    own_domains: list[str]
    project_id: str
    public_key: str
    public_keys: list[str]
    quotas: QuotasAnswer
    rate_limit: int
    retention_days: int | None
    retention_floor: datetime.date | None
    server_only_revenue: bool
    signals_policy: ProjectAnswerSignalsPolicy

    def to_dict(self) -> dict[str, Any]:
        allowed_origins = self.allowed_origins

        bots = self.bots.value

        burst = self.burst

        cookieless = self.cookieless

        created_at = self.created_at.isoformat()

        currency = self.currency

        ignored_referrers = self.ignored_referrers

        name = self.name

        own_domains = self.own_domains

        project_id = self.project_id

        public_key = self.public_key

        public_keys = self.public_keys

        quotas = self.quotas.to_dict()

        rate_limit = self.rate_limit

        retention_days: int | None
        retention_days = self.retention_days

        retention_floor: None | str
        if isinstance(self.retention_floor, datetime.date):
            retention_floor = self.retention_floor.isoformat()
        else:
            retention_floor = self.retention_floor

        server_only_revenue = self.server_only_revenue

        signals_policy = self.signals_policy.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "allowed_origins": allowed_origins,
                "bots": bots,
                "burst": burst,
                "cookieless": cookieless,
                "created_at": created_at,
                "currency": currency,
                "ignored_referrers": ignored_referrers,
                "name": name,
                "own_domains": own_domains,
                "project_id": project_id,
                "public_key": public_key,
                "public_keys": public_keys,
                "quotas": quotas,
                "rate_limit": rate_limit,
                "retention_days": retention_days,
                "retention_floor": retention_floor,
                "server_only_revenue": server_only_revenue,
                "signals_policy": signals_policy,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.quotas_answer import QuotasAnswer

        d = dict(src_dict)
        allowed_origins = cast(list[str], d.pop("allowed_origins"))

        bots = ProjectAnswerBots(d.pop("bots"))

        burst = d.pop("burst")

        cookieless = d.pop("cookieless")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        currency = d.pop("currency")

        ignored_referrers = cast(list[str], d.pop("ignored_referrers"))

        name = d.pop("name")

        own_domains = cast(list[str], d.pop("own_domains"))

        project_id = d.pop("project_id")

        public_key = d.pop("public_key")

        public_keys = cast(list[str], d.pop("public_keys"))

        quotas = QuotasAnswer.from_dict(d.pop("quotas"))

        rate_limit = d.pop("rate_limit")

        def _parse_retention_days(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        retention_days = _parse_retention_days(d.pop("retention_days"))

        def _parse_retention_floor(data: object) -> datetime.date | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                retention_floor_type_0 = datetime.date.fromisoformat(data)

                return retention_floor_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.date | None, data)

        retention_floor = _parse_retention_floor(d.pop("retention_floor"))

        server_only_revenue = d.pop("server_only_revenue")

        signals_policy = ProjectAnswerSignalsPolicy(d.pop("signals_policy"))

        project_answer = cls(
            allowed_origins=allowed_origins,
            bots=bots,
            burst=burst,
            cookieless=cookieless,
            created_at=created_at,
            currency=currency,
            ignored_referrers=ignored_referrers,
            name=name,
            own_domains=own_domains,
            project_id=project_id,
            public_key=public_key,
            public_keys=public_keys,
            quotas=quotas,
            rate_limit=rate_limit,
            retention_days=retention_days,
            retention_floor=retention_floor,
            server_only_revenue=server_only_revenue,
            signals_policy=signals_policy,
        )

        return project_answer
