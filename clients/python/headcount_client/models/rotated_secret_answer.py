from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="RotatedSecretAnswer")


@_attrs_define
class RotatedSecretAnswer:
    """A new secret.

    Attributes:
        previous_valid_until (datetime.datetime):
        secret (str): The secret: shown this once.
    """

    previous_valid_until: datetime.datetime
    secret: str

    def to_dict(self) -> dict[str, Any]:
        previous_valid_until = self.previous_valid_until.isoformat()

        secret = self.secret

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "previous_valid_until": previous_valid_until,
                "secret": secret,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        previous_valid_until = datetime.datetime.fromisoformat(
            d.pop("previous_valid_until")
        )

        secret = d.pop("secret")

        rotated_secret_answer = cls(
            previous_valid_until=previous_valid_until,
            secret=secret,
        )

        return rotated_secret_answer
