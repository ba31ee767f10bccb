from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.clock_jump_answer import ClockJumpAnswer


T = TypeVar("T", bound="ClockAnswer")


@_attrs_define
class ClockAnswer:
    """What the clock of the server shows, and what of it is believed where something would be removed.

    Attributes:
        believed (datetime.datetime):
        confirmed (list[ClockJumpAnswer]): The last jumps that were confirmed, oldest first.
        doubted (bool): Whether the clock is so far ahead that nothing is removed by it.
        jump (ClockJumpAnswer | None):
        shown (datetime.datetime):
    """

    believed: datetime.datetime
    confirmed: list[ClockJumpAnswer]
    doubted: bool
    jump: ClockJumpAnswer | None
    shown: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        from ..models.clock_jump_answer import ClockJumpAnswer

        believed = self.believed.isoformat()

        confirmed = []
        for confirmed_item_data in self.confirmed:
            confirmed_item = confirmed_item_data.to_dict()
            confirmed.append(confirmed_item)

        doubted = self.doubted

        jump: dict[str, Any] | None
        if isinstance(self.jump, ClockJumpAnswer):
            jump = self.jump.to_dict()
        else:
            jump = self.jump

        shown = self.shown.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "believed": believed,
                "confirmed": confirmed,
                "doubted": doubted,
                "jump": jump,
                "shown": shown,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.clock_jump_answer import ClockJumpAnswer

        d = dict(src_dict)
        believed = datetime.datetime.fromisoformat(d.pop("believed"))

        confirmed = []
        _confirmed = d.pop("confirmed")
        for confirmed_item_data in _confirmed:
            confirmed_item = ClockJumpAnswer.from_dict(confirmed_item_data)

            confirmed.append(confirmed_item)

        doubted = d.pop("doubted")

        def _parse_jump(data: object) -> ClockJumpAnswer | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                jump_type_0 = ClockJumpAnswer.from_dict(data)

                return jump_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ClockJumpAnswer | None, data)

        jump = _parse_jump(d.pop("jump"))

        shown = datetime.datetime.fromisoformat(d.pop("shown"))

        clock_answer = cls(
            believed=believed,
            confirmed=confirmed,
            doubted=doubted,
            jump=jump,
            shown=shown,
        )

        return clock_answer
