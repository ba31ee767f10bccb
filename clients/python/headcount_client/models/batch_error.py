from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="BatchError")


@_attrs_define
class BatchError:
    """An event of a batch that was not recorded.

    Attributes:
        code (str): The code of the error, for programs.
        index (int): Its place in the batch, from 0.
        message (str): The error, for people.
        param (None | str): The field that is wrong, where it is one.
    """

    code: str
    index: int
    message: str
    param: None | str

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        index = self.index

        message = self.message

        param: None | str
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

        def _parse_param(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        param = _parse_param(d.pop("param"))

        batch_error = cls(
            code=code,
            index=index,
            message=message,
            param=param,
        )

        return batch_error
