from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.identity_row import IdentityRow


T = TypeVar("T", bound="CompletedTopIdentitiesAnswer")


@_attrs_define
class CompletedTopIdentitiesAnswer:
    """The most active identified identities.

    Attributes:
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        currency (str): The currency of all amounts: the organization's.
        identities (list[IdentityRow]): Those with events in the range, in the order of the figure that was asked for.
        truncated (bool): Whether there are more.
    """

    complete_from: datetime.date | None
    currency: str
    identities: list[IdentityRow]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        currency = self.currency

        identities = []
        for identities_item_data in self.identities:
            identities_item = identities_item_data.to_dict()
            identities.append(identities_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "complete_from": complete_from,
                "currency": currency,
                "identities": identities,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.identity_row import IdentityRow

        d = dict(src_dict)

        def _parse_complete_from(data: object) -> datetime.date | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                complete_from_type_0 = datetime.date.fromisoformat(data)

                return complete_from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.date | None, data)

        complete_from = _parse_complete_from(d.pop("complete_from"))

        currency = d.pop("currency")

        identities = []
        _identities = d.pop("identities")
        for identities_item_data in _identities:
            identities_item = IdentityRow.from_dict(identities_item_data)

            identities.append(identities_item)

        truncated = d.pop("truncated")

        completed_top_identities_answer = cls(
            complete_from=complete_from,
            currency=currency,
            identities=identities,
            truncated=truncated,
        )

        return completed_top_identities_answer
