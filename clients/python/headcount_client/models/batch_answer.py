from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.batch_error import BatchError
    from ..models.batch_warning import BatchWarning


T = TypeVar("T", bound="BatchAnswer")


@_attrs_define
class BatchAnswer:
    """The outcome of a batch.

    Attributes:
        dropped (int): How many were dropped, by the project's policy.
        duplicates (int): How many had been recorded before.
        errors (list[BatchError]): The invalid ones, and those that a quota refused (`quota_exceeded`). All others need
            no resending.
        recorded (int): How many were recorded.
        clamped (list[int] | Unset): The places, from 0, of those that were recorded with the time of receipt, as their
            `timestamp` lay too far ahead. Absent if there are none.
        warnings (list[BatchWarning] | Unset): What was repaired of the events, and probable mistakes in them: the first
            100. Absent if there are none.
    """

    dropped: int
    duplicates: int
    errors: list[BatchError]
    recorded: int
    clamped: list[int] | Unset = UNSET
    warnings: list[BatchWarning] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        dropped = self.dropped

        duplicates = self.duplicates

        errors = []
        for errors_item_data in self.errors:
            errors_item = errors_item_data.to_dict()
            errors.append(errors_item)

        recorded = self.recorded

        clamped: list[int] | Unset = UNSET
        if not isinstance(self.clamped, Unset):
            clamped = self.clamped

        warnings: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.warnings, Unset):
            warnings = []
            for warnings_item_data in self.warnings:
                warnings_item = warnings_item_data.to_dict()
                warnings.append(warnings_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "dropped": dropped,
                "duplicates": duplicates,
                "errors": errors,
                "recorded": recorded,
            }
        )
        if clamped is not UNSET:
            field_dict["clamped"] = clamped
        if warnings is not UNSET:
            field_dict["warnings"] = warnings

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.batch_error import BatchError
        from ..models.batch_warning import BatchWarning

        d = dict(src_dict)
        dropped = d.pop("dropped")

        duplicates = d.pop("duplicates")

        errors = []
        _errors = d.pop("errors")
        for errors_item_data in _errors:
            errors_item = BatchError.from_dict(errors_item_data)

            errors.append(errors_item)

        recorded = d.pop("recorded")

        clamped = cast(list[int], d.pop("clamped", UNSET))

        _warnings = d.pop("warnings", UNSET)
        warnings: list[BatchWarning] | Unset = UNSET
        if _warnings is not UNSET:
            warnings = []
            for warnings_item_data in _warnings:
                warnings_item = BatchWarning.from_dict(warnings_item_data)

                warnings.append(warnings_item)

        batch_answer = cls(
            dropped=dropped,
            duplicates=duplicates,
            errors=errors,
            recorded=recorded,
            clamped=clamped,
            warnings=warnings,
        )

        return batch_answer
