from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.privacy_request_answer_status import PrivacyRequestAnswerStatus
from ..models.privacy_request_answer_type import PrivacyRequestAnswerType

if TYPE_CHECKING:
    from ..models.privacy_audit_answer import PrivacyAuditAnswer
    from ..models.privacy_failure_answer import PrivacyFailureAnswer
    from ..models.privacy_subject_answer import PrivacySubjectAnswer


T = TypeVar("T", bound="PrivacyRequestAnswer")


@_attrs_define
class PrivacyRequestAnswer:
    """A privacy request.

    Attributes:
        audit (list[PrivacyAuditAnswer]): What happened, oldest first; at most 100 entries.
        completed_at (datetime.datetime | None):
        created_at (datetime.datetime):
        download_available (bool): Whether it has an artifact that can be downloaded.
        error (None | PrivacyFailureAnswer):
        expires_at (datetime.datetime | None):
        id (str): Its id.
        status (PrivacyRequestAnswerStatus): How far the request is.
        subject (PrivacySubjectAnswer): Whom a request is about: one of `email`, `user_id` and `anonymous_id`. The value
            is `[erased]` once the person is erased.
        type_ (PrivacyRequestAnswerType): `export` makes a copy of what is recorded of the person; `erasure` removes it,
            and has nothing more recorded; `opt_in` has events of an erased person recorded again.
    """

    audit: list[PrivacyAuditAnswer]
    completed_at: datetime.datetime | None
    created_at: datetime.datetime
    download_available: bool
    error: None | PrivacyFailureAnswer
    expires_at: datetime.datetime | None
    id: str
    status: PrivacyRequestAnswerStatus
    subject: PrivacySubjectAnswer
    type_: PrivacyRequestAnswerType

    def to_dict(self) -> dict[str, Any]:
        from ..models.privacy_failure_answer import PrivacyFailureAnswer

        audit = []
        for audit_item_data in self.audit:
            audit_item = audit_item_data.to_dict()
            audit.append(audit_item)

        completed_at: None | str
        if isinstance(self.completed_at, datetime.datetime):
            completed_at = self.completed_at.isoformat()
        else:
            completed_at = self.completed_at

        created_at = self.created_at.isoformat()

        download_available = self.download_available

        error: dict[str, Any] | None
        if isinstance(self.error, PrivacyFailureAnswer):
            error = self.error.to_dict()
        else:
            error = self.error

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        id = self.id

        status = self.status.value

        subject = self.subject.to_dict()

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "audit": audit,
                "completed_at": completed_at,
                "created_at": created_at,
                "download_available": download_available,
                "error": error,
                "expires_at": expires_at,
                "id": id,
                "status": status,
                "subject": subject,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.privacy_audit_answer import PrivacyAuditAnswer
        from ..models.privacy_failure_answer import PrivacyFailureAnswer
        from ..models.privacy_subject_answer import PrivacySubjectAnswer

        d = dict(src_dict)
        audit = []
        _audit = d.pop("audit")
        for audit_item_data in _audit:
            audit_item = PrivacyAuditAnswer.from_dict(audit_item_data)

            audit.append(audit_item)

        def _parse_completed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                completed_at_type_0 = datetime.datetime.fromisoformat(data)

                return completed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        completed_at = _parse_completed_at(d.pop("completed_at"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        download_available = d.pop("download_available")

        def _parse_error(data: object) -> None | PrivacyFailureAnswer:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                error_type_0 = PrivacyFailureAnswer.from_dict(data)

                return error_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PrivacyFailureAnswer, data)

        error = _parse_error(d.pop("error"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        id = d.pop("id")

        status = PrivacyRequestAnswerStatus(d.pop("status"))

        subject = PrivacySubjectAnswer.from_dict(d.pop("subject"))

        type_ = PrivacyRequestAnswerType(d.pop("type"))

        privacy_request_answer = cls(
            audit=audit,
            completed_at=completed_at,
            created_at=created_at,
            download_available=download_available,
            error=error,
            expires_at=expires_at,
            id=id,
            status=status,
            subject=subject,
            type_=type_,
        )

        return privacy_request_answer
