from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.action_row import ActionRow


T = TypeVar("T", bound="ActionsAnswer")


@_attrs_define
class ActionsAnswer:
    """A part of the ledger of Actions.

    Attributes:
        actions (list[ActionRow]): The changes of the balance, newest first.
        balance (int): How many Actions are left.
        truncated (bool): Whether older ones follow.
    """

    actions: list[ActionRow]
    balance: int
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        actions = []
        for actions_item_data in self.actions:
            actions_item = actions_item_data.to_dict()
            actions.append(actions_item)

        balance = self.balance

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "actions": actions,
                "balance": balance,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.action_row import ActionRow

        d = dict(src_dict)
        actions = []
        _actions = d.pop("actions")
        for actions_item_data in _actions:
            actions_item = ActionRow.from_dict(actions_item_data)

            actions.append(actions_item)

        balance = d.pop("balance")

        truncated = d.pop("truncated")

        actions_answer = cls(
            actions=actions,
            balance=balance,
            truncated=truncated,
        )

        return actions_answer
