from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="WebhookReplayShape")


@_attrs_define
class WebhookReplayShape:
    """What to send again.

    Example:
        {'from_position': 1000}

    Attributes:
        from_position (int): The position of the first notification. None from before the webhook was made is sent.
    """

    from_position: int

    def to_dict(self) -> dict[str, Any]:
        from_position = self.from_position

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from_position": from_position,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        from_position = d.pop("from_position")

        webhook_replay_shape = cls(
            from_position=from_position,
        )

        return webhook_replay_shape
