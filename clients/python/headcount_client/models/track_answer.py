from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.track_status import TrackStatus
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.event_warning import EventWarning


T = TypeVar("T", bound="TrackAnswer")


@_attrs_define
class TrackAnswer:
    """The outcome of an event.

    Attributes:
        clamped (bool): Its `timestamp` lay too far ahead, and the time of receipt is used.
        duplicate (bool): Whether an event with its `external_id` was recorded before.
        id (None | str): Its id; a duplicate has the id of the first. Null if it was dropped.
        position (int | None): Its position, which rises within a project; a duplicate has that of the first. Null if it
            was dropped.
        reason (None | str): Why it was dropped: `bot`, `consent`, `opted_out`, `retention`.
        status (TrackStatus): Whether an event counts.
        warnings (list[EventWarning] | Unset): What was repaired of the event, and probable mistakes in it. Absent if
            there are none.
    """

    clamped: bool
    duplicate: bool
    id: None | str
    position: int | None
    reason: None | str
    status: TrackStatus
    warnings: list[EventWarning] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        clamped = self.clamped

        duplicate = self.duplicate

        id: None | str
        id = self.id

        position: int | None
        position = self.position

        reason: None | str
        reason = self.reason

        status = self.status.value

        warnings: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.warnings, Unset):
            warnings = []
            for warnings_item_data in self.warnings:
                warnings_item = warnings_item_data.to_dict()
                warnings.append(warnings_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "clamped": clamped,
                "duplicate": duplicate,
                "id": id,
                "position": position,
                "reason": reason,
                "status": status,
            }
        )
        if warnings is not UNSET:
            field_dict["warnings"] = warnings

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.event_warning import EventWarning

        d = dict(src_dict)
        clamped = d.pop("clamped")

        duplicate = d.pop("duplicate")

        def _parse_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        id = _parse_id(d.pop("id"))

        def _parse_position(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        position = _parse_position(d.pop("position"))

        def _parse_reason(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        reason = _parse_reason(d.pop("reason"))

        status = TrackStatus(d.pop("status"))

        _warnings = d.pop("warnings", UNSET)
        warnings: list[EventWarning] | Unset = UNSET
        if _warnings is not UNSET:
            warnings = []
            for warnings_item_data in _warnings:
                warnings_item = EventWarning.from_dict(warnings_item_data)

                warnings.append(warnings_item)

        track_answer = cls(
            clamped=clamped,
            duplicate=duplicate,
            id=id,
            position=position,
            reason=reason,
            status=status,
            warnings=warnings,
        )

        return track_answer
