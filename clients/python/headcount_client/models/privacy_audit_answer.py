from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.privacy_detail import PrivacyDetail


T = TypeVar("T", bound="PrivacyAuditAnswer")


@_attrs_define
class PrivacyAuditAnswer:
    """What happened to a request.

    Attributes:
        at (datetime.datetime):
        detail (PrivacyDetail): What an entry tells; which fields it has depends on the event.
        event (str): What: `created`, `started`, `resumed`, `progress` (one, which changes), `retried`, `failed`,
            `erased` (once for each project), `completed`, `downloaded`,
            `expired`, `artifact_erased`.
    """

    at: datetime.datetime
    detail: PrivacyDetail
    event: str

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        detail = self.detail.to_dict()

        event = self.event

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
                "detail": detail,
                "event": event,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.privacy_detail import PrivacyDetail

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        detail = PrivacyDetail.from_dict(d.pop("detail"))

        event = d.pop("event")

        privacy_audit_answer = cls(
            at=at,
            detail=detail,
            event=event,
        )

        return privacy_audit_answer
