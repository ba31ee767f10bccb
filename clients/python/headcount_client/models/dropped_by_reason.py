from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="DroppedByReason")


@_attrs_define
class DroppedByReason:
    """Dropped events by reason.

    Attributes:
        bot (int): Crawlers, monitors and previewers.
        consent (int): Events with a privacy signal.
        opted_out (int): Events of erased identities.
        retention (int): Events of days that the project no longer keeps.
    """

    bot: int
    consent: int
    opted_out: int
    retention: int

    def to_dict(self) -> dict[str, Any]:
        bot = self.bot

        consent = self.consent

        opted_out = self.opted_out

        retention = self.retention

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "bot": bot,
                "consent": consent,
                "opted_out": opted_out,
                "retention": retention,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        bot = d.pop("bot")

        consent = d.pop("consent")

        opted_out = d.pop("opted_out")

        retention = d.pop("retention")

        dropped_by_reason = cls(
            bot=bot,
            consent=consent,
            opted_out=opted_out,
            retention=retention,
        )

        return dropped_by_reason
