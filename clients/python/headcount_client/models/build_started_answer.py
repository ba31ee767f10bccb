from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="BuildStartedAnswer")


@_attrs_define
class BuildStartedAnswer:
    """A run that began, or that is under way for the profile.

    Attributes:
        run_id (str): The run's id.
    """

    run_id: str

    def to_dict(self) -> dict[str, Any]:
        run_id = self.run_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "run_id": run_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        run_id = d.pop("run_id")

        build_started_answer = cls(
            run_id=run_id,
        )

        return build_started_answer
