from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CodeAnswer")


@_attrs_define
class CodeAnswer:
    """A code that signs a browser in.

    Attributes:
        code (str): The code. It works once.
        expires_at (datetime.datetime):
        url (str): The address that signs a browser in with it. What is after `#` is in no log of a server.
    """

    code: str
    expires_at: datetime.datetime
    url: str

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        expires_at = self.expires_at.isoformat()

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "expires_at": expires_at,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        code = d.pop("code")

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        url = d.pop("url")

        code_answer = cls(
            code=code,
            expires_at=expires_at,
            url=url,
        )

        return code_answer
