from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.lifetime_figures_answer import LifetimeFiguresAnswer


T = TypeVar("T", bound="PrivacyDetail")


@_attrs_define
class PrivacyDetail:
    """What an entry tells; which fields it has depends on the event.

    Attributes:
        after (LifetimeFiguresAnswer | None | Unset):
        before (LifetimeFiguresAnswer | None | Unset):
        code (None | str | Unset): Of `retried` and `failed`: what went wrong, for programs.
        done (int | None | Unset): Of `progress`: how many events are written.
        events (int | None | Unset): Of `completed`: how many events were removed, or exported.
        identities (int | None | Unset): Of `completed`: how many identities the request was about.
        project_id (None | str | Unset): Of `erased`: the project.
        token_id (None | str | Unset): Of `created` and `downloaded`: the token; null if there was none.
        total (int | None | Unset): Of `progress`: how many events there are.
    """

    after: LifetimeFiguresAnswer | None | Unset = UNSET
    before: LifetimeFiguresAnswer | None | Unset = UNSET
    code: None | str | Unset = UNSET
    done: int | None | Unset = UNSET
    events: int | None | Unset = UNSET
    identities: int | None | Unset = UNSET
    project_id: None | str | Unset = UNSET
    token_id: None | str | Unset = UNSET
    total: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.lifetime_figures_answer import LifetimeFiguresAnswer

        after: dict[str, Any] | None | Unset
        if isinstance(self.after, Unset):
            after = UNSET
        elif isinstance(self.after, LifetimeFiguresAnswer):
            after = self.after.to_dict()
        else:
            after = self.after

        before: dict[str, Any] | None | Unset
        if isinstance(self.before, Unset):
            before = UNSET
        elif isinstance(self.before, LifetimeFiguresAnswer):
            before = self.before.to_dict()
        else:
            before = self.before

        code: None | str | Unset
        if isinstance(self.code, Unset):
            code = UNSET
        else:
            code = self.code

        done: int | None | Unset
        if isinstance(self.done, Unset):
            done = UNSET
        else:
            done = self.done

        events: int | None | Unset
        if isinstance(self.events, Unset):
            events = UNSET
        else:
            events = self.events

        identities: int | None | Unset
        if isinstance(self.identities, Unset):
            identities = UNSET
        else:
            identities = self.identities

        project_id: None | str | Unset
        if isinstance(self.project_id, Unset):
            project_id = UNSET
        else:
            project_id = self.project_id

        token_id: None | str | Unset
        if isinstance(self.token_id, Unset):
            token_id = UNSET
        else:
            token_id = self.token_id

        total: int | None | Unset
        if isinstance(self.total, Unset):
            total = UNSET
        else:
            total = self.total

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if after is not UNSET:
            field_dict["after"] = after
        if before is not UNSET:
            field_dict["before"] = before
        if code is not UNSET:
            field_dict["code"] = code
        if done is not UNSET:
            field_dict["done"] = done
        if events is not UNSET:
            field_dict["events"] = events
        if identities is not UNSET:
            field_dict["identities"] = identities
        if project_id is not UNSET:
            field_dict["project_id"] = project_id
        if token_id is not UNSET:
            field_dict["token_id"] = token_id
        if total is not UNSET:
            field_dict["total"] = total

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.lifetime_figures_answer import LifetimeFiguresAnswer

        d = dict(src_dict)

        def _parse_after(data: object) -> LifetimeFiguresAnswer | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                after_type_0 = LifetimeFiguresAnswer.from_dict(data)

                return after_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LifetimeFiguresAnswer | None | Unset, data)

        after = _parse_after(d.pop("after", UNSET))

        def _parse_before(data: object) -> LifetimeFiguresAnswer | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                before_type_0 = LifetimeFiguresAnswer.from_dict(data)

                return before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LifetimeFiguresAnswer | None | Unset, data)

        before = _parse_before(d.pop("before", UNSET))

        def _parse_code(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        code = _parse_code(d.pop("code", UNSET))

        def _parse_done(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        done = _parse_done(d.pop("done", UNSET))

        def _parse_events(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        events = _parse_events(d.pop("events", UNSET))

        def _parse_identities(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        identities = _parse_identities(d.pop("identities", UNSET))

        def _parse_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        project_id = _parse_project_id(d.pop("project_id", UNSET))

        def _parse_token_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        token_id = _parse_token_id(d.pop("token_id", UNSET))

        def _parse_total(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        total = _parse_total(d.pop("total", UNSET))

        privacy_detail = cls(
            after=after,
            before=before,
            code=code,
            done=done,
            events=events,
            identities=identities,
            project_id=project_id,
            token_id=token_id,
            total=total,
        )

        return privacy_detail
