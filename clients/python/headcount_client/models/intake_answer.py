from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.dropped_by_reason import DroppedByReason
    from ..models.intake_answer_repaired import IntakeAnswerRepaired


T = TypeVar("T", bound="IntakeAnswer")


@_attrs_define
class IntakeAnswer:
    """What arrived at a project, by the day of receipt.

    Attributes:
        approximate (bool): Whether the server ended without warning in these days: then all counts but `recorded` and
            `without_consent` may lack up to 10 seconds.
        dropped (DroppedByReason): Dropped events by reason.
        duplicates (int): Events whose `external_id` was recorded before.
        invalid (int): Events that were refused with 400, and those in the `errors` of batches. A malformed body counts
            as one.
        last_event_at (datetime.datetime | None):
        recorded (int): Recorded events. Exact, also after a crash; erasing an identity lowers it.
        repaired (IntakeAnswerRepaired): What was repaired of events that were taken, by the `code` of the warning.
            Codes that did not occur are absent.
        without_consent (int): Recorded events that were sent without consent: part of `recorded`.
    """

    approximate: bool
    dropped: DroppedByReason
    duplicates: int
    invalid: int
    last_event_at: datetime.datetime | None
    recorded: int
    repaired: IntakeAnswerRepaired
    without_consent: int

    def to_dict(self) -> dict[str, Any]:
        approximate = self.approximate

        dropped = self.dropped.to_dict()

        duplicates = self.duplicates

        invalid = self.invalid

        last_event_at: None | str
        if isinstance(self.last_event_at, datetime.datetime):
            last_event_at = self.last_event_at.isoformat()
        else:
            last_event_at = self.last_event_at

        recorded = self.recorded

        repaired = self.repaired.to_dict()

        without_consent = self.without_consent

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "approximate": approximate,
                "dropped": dropped,
                "duplicates": duplicates,
                "invalid": invalid,
                "last_event_at": last_event_at,
                "recorded": recorded,
                "repaired": repaired,
                "without_consent": without_consent,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.dropped_by_reason import DroppedByReason
        from ..models.intake_answer_repaired import IntakeAnswerRepaired

        d = dict(src_dict)
        approximate = d.pop("approximate")

        dropped = DroppedByReason.from_dict(d.pop("dropped"))

        duplicates = d.pop("duplicates")

        invalid = d.pop("invalid")

        def _parse_last_event_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_event_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_event_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_event_at = _parse_last_event_at(d.pop("last_event_at"))

        recorded = d.pop("recorded")

        repaired = IntakeAnswerRepaired.from_dict(d.pop("repaired"))

        without_consent = d.pop("without_consent")

        intake_answer = cls(
            approximate=approximate,
            dropped=dropped,
            duplicates=duplicates,
            invalid=invalid,
            last_event_at=last_event_at,
            recorded=recorded,
            repaired=repaired,
            without_consent=without_consent,
        )

        return intake_answer
