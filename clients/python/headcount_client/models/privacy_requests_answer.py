from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.privacy_request_answer import PrivacyRequestAnswer


T = TypeVar("T", bound="PrivacyRequestsAnswer")


@_attrs_define
class PrivacyRequestsAnswer:
    """A part of the list of privacy requests.

    Attributes:
        privacy_requests (list[PrivacyRequestAnswer]): The requests, newest first.
        truncated (bool): Whether older ones follow.
    """

    privacy_requests: list[PrivacyRequestAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        privacy_requests = []
        for privacy_requests_item_data in self.privacy_requests:
            privacy_requests_item = privacy_requests_item_data.to_dict()
            privacy_requests.append(privacy_requests_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "privacy_requests": privacy_requests,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.privacy_request_answer import PrivacyRequestAnswer

        d = dict(src_dict)
        privacy_requests = []
        _privacy_requests = d.pop("privacy_requests")
        for privacy_requests_item_data in _privacy_requests:
            privacy_requests_item = PrivacyRequestAnswer.from_dict(
                privacy_requests_item_data
            )

            privacy_requests.append(privacy_requests_item)

        truncated = d.pop("truncated")

        privacy_requests_answer = cls(
            privacy_requests=privacy_requests,
            truncated=truncated,
        )

        return privacy_requests_answer
