from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="SessionProject")


@_attrs_define
class SessionProject:
    """A project that can be shown.

    Attributes:
        currency (str): Its currency.
        name (str): Its name.
        project_id (str): Its id.
        retention_days (int | None): For how many days events are kept, today included; null: for ever.
        retention_floor (datetime.date | None): The first day of which events are kept; null: all days. It never falls.
    """

    currency: str
    name: str
    project_id: str
    retention_days: int | None
    retention_floor: datetime.date | None

    def to_dict(self) -> dict[str, Any]:
        currency = self.currency

        name = self.name

        project_id = self.project_id

        retention_days: int | None
        retention_days = self.retention_days

        retention_floor: None | str
        if isinstance(self.retention_floor, datetime.date):
            retention_floor = self.retention_floor.isoformat()
        else:
            retention_floor = self.retention_floor

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "currency": currency,
                "name": name,
                "project_id": project_id,
                "retention_days": retention_days,
                "retention_floor": retention_floor,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        currency = d.pop("currency")

        name = d.pop("name")

        project_id = d.pop("project_id")

        def _parse_retention_days(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        retention_days = _parse_retention_days(d.pop("retention_days"))

        def _parse_retention_floor(data: object) -> datetime.date | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                retention_floor_type_0 = datetime.date.fromisoformat(data)

                return retention_floor_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.date | None, data)

        retention_floor = _parse_retention_floor(d.pop("retention_floor"))

        session_project = cls(
            currency=currency,
            name=name,
            project_id=project_id,
            retention_days=retention_days,
            retention_floor=retention_floor,
        )

        return session_project
