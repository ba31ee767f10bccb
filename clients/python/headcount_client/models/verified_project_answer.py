from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="VerifiedProjectAnswer")


@_attrs_define
class VerifiedProjectAnswer:
    """A project whose figures were recomputed and compared.

    Attributes:
        cells (int): The number of cells and records that were compared.
        events (int): The number of events that they were recomputed from.
        frozen (int): The number of cells that are older than what is kept of the events, and are taken as they are.
        position (int): The position of the last event that the figures reflect.
        project_id (str): The project.
    """

    cells: int
    events: int
    frozen: int
    position: int
    project_id: str

    def to_dict(self) -> dict[str, Any]:
        cells = self.cells

        events = self.events

        frozen = self.frozen

        position = self.position

        project_id = self.project_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cells": cells,
                "events": events,
                "frozen": frozen,
                "position": position,
                "project_id": project_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        cells = d.pop("cells")

        events = d.pop("events")

        frozen = d.pop("frozen")

        position = d.pop("position")

        project_id = d.pop("project_id")

        verified_project_answer = cls(
            cells=cells,
            events=events,
            frozen=frozen,
            position=position,
            project_id=project_id,
        )

        return verified_project_answer
