from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.delivery_answer_status import DeliveryAnswerStatus

T = TypeVar("T", bound="DeliveryAnswer")


@_attrs_define
class DeliveryAnswer:
    """What became of a notification.

    Attributes:
        attempts (int): How often it was tried.
        created_at (datetime.datetime):
        delivered_at (datetime.datetime | None):
        event_id (str): The id of the event.
        id (str): The delivery's id: the same at each try, and after a replay.
        last_error (None | str): Why there was none; null if there was one.
        last_status (int | None): The status of the last answer; null if there was none.
        position (int): The position of the event.
        status (DeliveryAnswerStatus): `pending`: it is tried; `delivered`: the receiver took it; `dead`: it was given
            up.
    """

    attempts: int
    created_at: datetime.datetime
    delivered_at: datetime.datetime | None
    event_id: str
    id: str
    last_error: None | str
    last_status: int | None
    position: int
    status: DeliveryAnswerStatus

    def to_dict(self) -> dict[str, Any]:
        attempts = self.attempts

        created_at = self.created_at.isoformat()

        delivered_at: None | str
        if isinstance(self.delivered_at, datetime.datetime):
            delivered_at = self.delivered_at.isoformat()
        else:
            delivered_at = self.delivered_at

        event_id = self.event_id

        id = self.id

        last_error: None | str
        last_error = self.last_error

        last_status: int | None
        last_status = self.last_status

        position = self.position

        status = self.status.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "attempts": attempts,
                "created_at": created_at,
                "delivered_at": delivered_at,
                "event_id": event_id,
                "id": id,
                "last_error": last_error,
                "last_status": last_status,
                "position": position,
                "status": status,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        attempts = d.pop("attempts")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_delivered_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                delivered_at_type_0 = datetime.datetime.fromisoformat(data)

                return delivered_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        delivered_at = _parse_delivered_at(d.pop("delivered_at"))

        event_id = d.pop("event_id")

        id = d.pop("id")

        def _parse_last_error(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        last_error = _parse_last_error(d.pop("last_error"))

        def _parse_last_status(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        last_status = _parse_last_status(d.pop("last_status"))

        position = d.pop("position")

        status = DeliveryAnswerStatus(d.pop("status"))

        delivery_answer = cls(
            attempts=attempts,
            created_at=created_at,
            delivered_at=delivered_at,
            event_id=event_id,
            id=id,
            last_error=last_error,
            last_status=last_status,
            position=position,
            status=status,
        )

        return delivery_answer
