from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="EventWarning")


@_attrs_define
class EventWarning:
    """What was wrong with an event that was taken all the same.

    Attributes:
        code (str): Its kind, for programs: `clamped`, `currency_unknown`, `field_ignored`, `group_ignored`,
            `metadata_trimmed`, `misspelt_field`, `no_rate`,
            `placeholder_id`, `text_cut`, `timestamp_in_seconds` or `value_ignored`.
        message (str): What was wrong and what became of it, for people.
        param (str): The field.
    """

    code: str
    message: str
    param: str

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        message = self.message

        param = self.param

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "message": message,
                "param": param,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        code = d.pop("code")

        message = d.pop("message")

        param = d.pop("param")

        event_warning = cls(
            code=code,
            message=message,
            param=param,
        )

        return event_warning
