from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SessionProject")


@_attrs_define
class SessionProject:
    """A project that can be shown.

    Attributes:
        currency (str): Its currency.
        name (str): Its name.
        project_id (str): Its id.
    """

    currency: str
    name: str
    project_id: str

    def to_dict(self) -> dict[str, Any]:
        currency = self.currency

        name = self.name

        project_id = self.project_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "currency": currency,
                "name": name,
                "project_id": project_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        currency = d.pop("currency")

        name = d.pop("name")

        project_id = d.pop("project_id")

        session_project = cls(
            currency=currency,
            name=name,
            project_id=project_id,
        )

        return session_project
