from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="BuildErrorAnswer")


@_attrs_define
class BuildErrorAnswer:
    """Why a run failed.

    Attributes:
        code (str): A stable code: `blocked_address`, `dns_failed`, `connect_failed`, `tls_failed`, `timeout`,
            `too_many_redirects`, `robots_disallowed`, `http_status`,
            `not_html`, `too_large`, `invalid_url`, `profile_deleted`, `profile_damaged`, `website_mismatch`,
            `website_taken`, `given_up`, `internal_error`.
        message (str): The reason in words.
        url (None | str): The URL that could not be read; null if that is not the reason.
    """

    code: str
    message: str
    url: None | str

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        message = self.message

        url: None | str
        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "message": message,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        code = d.pop("code")

        message = d.pop("message")

        def _parse_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        url = _parse_url(d.pop("url"))

        build_error_answer = cls(
            code=code,
            message=message,
            url=url,
        )

        return build_error_answer
