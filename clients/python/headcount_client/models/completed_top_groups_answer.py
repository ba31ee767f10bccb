from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.group_answer import GroupAnswer


T = TypeVar("T", bound="CompletedTopGroupsAnswer")


@_attrs_define
class CompletedTopGroupsAnswer:
    """The most active groups of a type.

    Attributes:
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        groups (list[GroupAnswer]): Those with events in the range, the most active first.
        truncated (bool): Whether there are more.
    """

    complete_from: datetime.date | None
    groups: list[GroupAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        groups = []
        for groups_item_data in self.groups:
            groups_item = groups_item_data.to_dict()
            groups.append(groups_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "complete_from": complete_from,
                "groups": groups,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.group_answer import GroupAnswer

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

        groups = []
        _groups = d.pop("groups")
        for groups_item_data in _groups:
            groups_item = GroupAnswer.from_dict(groups_item_data)

            groups.append(groups_item)

        truncated = d.pop("truncated")

        completed_top_groups_answer = cls(
            complete_from=complete_from,
            groups=groups,
            truncated=truncated,
        )

        return completed_top_groups_answer
