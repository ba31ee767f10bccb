from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.action_row_reason import ActionRowReason

T = TypeVar("T", bound="ActionRow")


@_attrs_define
class ActionRow:
    """A change of the balance.

    Attributes:
        at (datetime.datetime):
        balance (int): The balance after it.
        change (int): By how much.
        id (str): The entry's id.
        reason (ActionRowReason): `build`: a build of a company profile spent them; `refund`: it failed, and they were
            given back; `set`: an administrator set the balance.
        run_id (None | str): The build of a company profile that it is about; null for none.
        token_id (None | str): The token of whoever made it; null for none.
    """

    at: datetime.datetime
    balance: int
    change: int
    id: str
    reason: ActionRowReason
    run_id: None | str
    token_id: None | str

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        balance = self.balance

        change = self.change

        id = self.id

        reason = self.reason.value

        run_id: None | str
        run_id = self.run_id

        token_id: None | str
        token_id = self.token_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
                "balance": balance,
                "change": change,
                "id": id,
                "reason": reason,
                "run_id": run_id,
                "token_id": token_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        balance = d.pop("balance")

        change = d.pop("change")

        id = d.pop("id")

        reason = ActionRowReason(d.pop("reason"))

        def _parse_run_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        run_id = _parse_run_id(d.pop("run_id"))

        def _parse_token_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        token_id = _parse_token_id(d.pop("token_id"))

        action_row = cls(
            at=at,
            balance=balance,
            change=change,
            id=id,
            reason=reason,
            run_id=run_id,
            token_id=token_id,
        )

        return action_row
