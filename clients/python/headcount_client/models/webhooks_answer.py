from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.webhook_answer import WebhookAnswer


T = TypeVar("T", bound="WebhooksAnswer")


@_attrs_define
class WebhooksAnswer:
    """A part of the webhooks.

    Attributes:
        truncated (bool): Whether older ones follow.
        webhooks (list[WebhookAnswer]): The webhooks, newest first.
    """

    truncated: bool
    webhooks: list[WebhookAnswer]

    def to_dict(self) -> dict[str, Any]:
        truncated = self.truncated

        webhooks = []
        for webhooks_item_data in self.webhooks:
            webhooks_item = webhooks_item_data.to_dict()
            webhooks.append(webhooks_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "truncated": truncated,
                "webhooks": webhooks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.webhook_answer import WebhookAnswer

        d = dict(src_dict)
        truncated = d.pop("truncated")

        webhooks = []
        _webhooks = d.pop("webhooks")
        for webhooks_item_data in _webhooks:
            webhooks_item = WebhookAnswer.from_dict(webhooks_item_data)

            webhooks.append(webhooks_item)

        webhooks_answer = cls(
            truncated=truncated,
            webhooks=webhooks,
        )

        return webhooks_answer
