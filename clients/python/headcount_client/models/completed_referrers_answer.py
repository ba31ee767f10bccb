from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.referrer_count import ReferrerCount


T = TypeVar("T", bound="CompletedReferrersAnswer")


@_attrs_define
class CompletedReferrersAnswer:
    """The referrers of a user.

    Attributes:
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        identity_id (str): The identity, `id_…`.
        referrers (list[ReferrerCount]): The referrers, the most frequent first.
        truncated (bool): Whether there are more.
    """

    complete_from: datetime.date | None
    identity_id: str
    referrers: list[ReferrerCount]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        identity_id = self.identity_id

        referrers = []
        for referrers_item_data in self.referrers:
            referrers_item = referrers_item_data.to_dict()
            referrers.append(referrers_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "complete_from": complete_from,
                "identity_id": identity_id,
                "referrers": referrers,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.referrer_count import ReferrerCount

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

        identity_id = d.pop("identity_id")

        referrers = []
        _referrers = d.pop("referrers")
        for referrers_item_data in _referrers:
            referrers_item = ReferrerCount.from_dict(referrers_item_data)

            referrers.append(referrers_item)

        truncated = d.pop("truncated")

        completed_referrers_answer = cls(
            complete_from=complete_from,
            identity_id=identity_id,
            referrers=referrers,
            truncated=truncated,
        )

        return completed_referrers_answer
