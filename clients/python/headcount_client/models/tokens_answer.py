from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.token_answer import TokenAnswer


T = TypeVar("T", bound="TokensAnswer")


@_attrs_define
class TokensAnswer:
    """The tokens of an organization.

    Attributes:
        api_tokens (list[TokenAnswer]): The tokens, oldest first, those that have expired included.
        truncated (bool): Whether some are left out: never.
    """

    api_tokens: list[TokenAnswer]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        api_tokens = []
        for api_tokens_item_data in self.api_tokens:
            api_tokens_item = api_tokens_item_data.to_dict()
            api_tokens.append(api_tokens_item)

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "api_tokens": api_tokens,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.token_answer import TokenAnswer

        d = dict(src_dict)
        api_tokens = []
        _api_tokens = d.pop("api_tokens")
        for api_tokens_item_data in _api_tokens:
            api_tokens_item = TokenAnswer.from_dict(api_tokens_item_data)

            api_tokens.append(api_tokens_item)

        truncated = d.pop("truncated")

        tokens_answer = cls(
            api_tokens=api_tokens,
            truncated=truncated,
        )

        return tokens_answer
