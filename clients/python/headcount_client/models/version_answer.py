from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="VersionAnswer")


@_attrs_define
class VersionAnswer:
    """Which version runs.

    Attributes:
        api (datetime.date): The date of the interface.
        name (str): `headcount`.
        version (str): The version of the program.
    """

    api: datetime.date
    name: str
    version: str

    def to_dict(self) -> dict[str, Any]:
        api = self.api.isoformat()

        name = self.name

        version = self.version

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "api": api,
                "name": name,
                "version": version,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        api = datetime.date.fromisoformat(d.pop("api"))

        name = d.pop("name")

        version = d.pop("version")

        version_answer = cls(
            api=api,
            name=name,
            version=version,
        )

        return version_answer
