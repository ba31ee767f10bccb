from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.audit_row_action import AuditRowAction

if TYPE_CHECKING:
    from ..models.actor_row import ActorRow
    from ..models.audit_row_changes import AuditRowChanges
    from ..models.target_row import TargetRow


T = TypeVar("T", bound="AuditRow")


@_attrs_define
class AuditRow:
    """One change.

    Attributes:
        action (AuditRowAction): What was done.
        actor (ActorRow): Who made a change.
        at (datetime.datetime):
        changes (AuditRowChanges): The fields that changed. What is made has no fields before, what is removed none
            after.
        id (str): The entry's id.
        request_id (None | str): The id of the request; null if it was none.
        target (TargetRow): What a change was made to.
    """

    action: AuditRowAction
    actor: ActorRow
    at: datetime.datetime
    changes: AuditRowChanges
    id: str
    request_id: None | str
    target: TargetRow

    def to_dict(self) -> dict[str, Any]:
        action = self.action.value

        actor = self.actor.to_dict()

        at = self.at.isoformat()

        changes = self.changes.to_dict()

        id = self.id

        request_id: None | str
        request_id = self.request_id

        target = self.target.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "action": action,
                "actor": actor,
                "at": at,
                "changes": changes,
                "id": id,
                "request_id": request_id,
                "target": target,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.actor_row import ActorRow
        from ..models.audit_row_changes import AuditRowChanges
        from ..models.target_row import TargetRow

        d = dict(src_dict)
        action = AuditRowAction(d.pop("action"))

        actor = ActorRow.from_dict(d.pop("actor"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        changes = AuditRowChanges.from_dict(d.pop("changes"))

        id = d.pop("id")

        def _parse_request_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        request_id = _parse_request_id(d.pop("request_id"))

        target = TargetRow.from_dict(d.pop("target"))

        audit_row = cls(
            action=action,
            actor=actor,
            at=at,
            changes=changes,
            id=id,
            request_id=request_id,
            target=target,
        )

        return audit_row
