from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="WebhookReplayAnswer")


@_attrs_define
class WebhookReplayAnswer:
    """The notifications that are sent again.

    Attributes:
        from_position (int): The first position.
        to_position (int): The last position when the replay was asked for. Later notifications follow.
    """

    from_position: int
    to_position: int

    def to_dict(self) -> dict[str, Any]:
        from_position = self.from_position

        to_position = self.to_position

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from_position": from_position,
                "to_position": to_position,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        from_position = d.pop("from_position")

        to_position = d.pop("to_position")

        webhook_replay_answer = cls(
            from_position=from_position,
            to_position=to_position,
        )

        return webhook_replay_answer
