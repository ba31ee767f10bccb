from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="BatchWarning")


@_attrs_define
class BatchWarning:
    """A warning about an event of a batch.

    Attributes:
        code (str): Its kind, for programs, as of a single event.
        index (int): The event's place in the batch, from 0.
        message (str): What was wrong and what became of it, for people.
        param (str): The field.
    """

    code: str
    index: int
    message: str
    param: str

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        index = self.index

        message = self.message

        param = self.param

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "index": index,
                "message": message,
                "param": param,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        code = d.pop("code")

        index = d.pop("index")

        message = d.pop("message")

        param = d.pop("param")

        batch_warning = cls(
            code=code,
            index=index,
            message=message,
            param=param,
        )

        return batch_warning
