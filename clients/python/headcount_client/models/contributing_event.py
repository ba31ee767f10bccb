from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.contribution_reason import ContributionReason
from ..types import UNSET, Unset

T = TypeVar("T", bound="ContributingEvent")


@_attrs_define
class ContributingEvent:
    """An event that contributes to the figure.

    Attributes:
        at (str): When it happened.
        contributes (float):
        event_id (str): The event's id, as `POST /track` answered it.
        identity_id (None | str): The identity, after links; null without consent.
        name (str): The event's name.
        position (int):
        why (ContributionReason):
        currency (None | str | Unset): The currency of `value`; null if it has none. Absent if the token may not see
            money.
        value (float | None | Unset):
    """

    at: str
    contributes: float
    event_id: str
    identity_id: None | str
    name: str
    position: int
    why: ContributionReason
    currency: None | str | Unset = UNSET
    value: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        at = self.at

        contributes = self.contributes

        event_id = self.event_id

        identity_id: None | str
        identity_id = self.identity_id

        name = self.name

        position = self.position

        why = self.why.value

        currency: None | str | Unset
        if isinstance(self.currency, Unset):
            currency = UNSET
        else:
            currency = self.currency

        value: float | None | Unset
        if isinstance(self.value, Unset):
            value = UNSET
        else:
            value = self.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
                "contributes": contributes,
                "event_id": event_id,
                "identity_id": identity_id,
                "name": name,
                "position": position,
                "why": why,
            }
        )
        if currency is not UNSET:
            field_dict["currency"] = currency
        if value is not UNSET:
            field_dict["value"] = value

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        at = d.pop("at")

        contributes = d.pop("contributes")

        event_id = d.pop("event_id")

        def _parse_identity_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        identity_id = _parse_identity_id(d.pop("identity_id"))

        name = d.pop("name")

        position = d.pop("position")

        why = ContributionReason(d.pop("why"))

        def _parse_currency(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        currency = _parse_currency(d.pop("currency", UNSET))

        def _parse_value(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        value = _parse_value(d.pop("value", UNSET))

        contributing_event = cls(
            at=at,
            contributes=contributes,
            event_id=event_id,
            identity_id=identity_id,
            name=name,
            position=position,
            why=why,
            currency=currency,
            value=value,
        )

        return contributing_event
