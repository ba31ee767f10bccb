from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="PrivacyFailureAnswer")


@_attrs_define
class PrivacyFailureAnswer:
    """Why a request failed.

    Attributes:
        code (str): What went wrong, for programs.
        message (str): The same, for people.
    """

    code: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        message = self.message

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "message": message,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        code = d.pop("code")

        message = d.pop("message")

        privacy_failure_answer = cls(
            code=code,
            message=message,
        )

        return privacy_failure_answer
