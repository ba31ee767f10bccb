from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.damaged_file_answer import DamagedFileAnswer
    from ..models.differing_cell_answer import DifferingCellAnswer
    from ..models.unverified_partition_answer import UnverifiedPartitionAnswer
    from ..models.verified_project_answer import VerifiedProjectAnswer


T = TypeVar("T", bound="VerifyAnswer")


@_attrs_define
class VerifyAnswer:
    """The result of a verification.

    Attributes:
        cells (list[DifferingCellAnswer]): The first 1,000 of them.
        damaged (list[DamagedFileAnswer]): The damaged files.
        differing (int): The number of differing cells.
        projects (list[VerifiedProjectAnswer]): The projects that were recomputed.
        status (str): `clean`; `incomplete`: nothing wrong was found, but partitions of a cluster are not verified;
            `differs`: figures differ; `damaged`: files are damaged.
        not_verified (list[UnverifiedPartitionAnswer] | Unset): The partitions of a cluster of which not everything was
            verified.
    """

    cells: list[DifferingCellAnswer]
    damaged: list[DamagedFileAnswer]
    differing: int
    projects: list[VerifiedProjectAnswer]
    status: str
    not_verified: list[UnverifiedPartitionAnswer] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        cells = []
        for cells_item_data in self.cells:
            cells_item = cells_item_data.to_dict()
            cells.append(cells_item)

        damaged = []
        for damaged_item_data in self.damaged:
            damaged_item = damaged_item_data.to_dict()
            damaged.append(damaged_item)

        differing = self.differing

        projects = []
        for projects_item_data in self.projects:
            projects_item = projects_item_data.to_dict()
            projects.append(projects_item)

        status = self.status

        not_verified: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.not_verified, Unset):
            not_verified = []
            for not_verified_item_data in self.not_verified:
                not_verified_item = not_verified_item_data.to_dict()
                not_verified.append(not_verified_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cells": cells,
                "damaged": damaged,
                "differing": differing,
                "projects": projects,
                "status": status,
            }
        )
        if not_verified is not UNSET:
            field_dict["not_verified"] = not_verified

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.damaged_file_answer import DamagedFileAnswer
        from ..models.differing_cell_answer import DifferingCellAnswer
        from ..models.unverified_partition_answer import UnverifiedPartitionAnswer
        from ..models.verified_project_answer import VerifiedProjectAnswer

        d = dict(src_dict)
        cells = []
        _cells = d.pop("cells")
        for cells_item_data in _cells:
            cells_item = DifferingCellAnswer.from_dict(cells_item_data)

            cells.append(cells_item)

        damaged = []
        _damaged = d.pop("damaged")
        for damaged_item_data in _damaged:
            damaged_item = DamagedFileAnswer.from_dict(damaged_item_data)

            damaged.append(damaged_item)

        differing = d.pop("differing")

        projects = []
        _projects = d.pop("projects")
        for projects_item_data in _projects:
            projects_item = VerifiedProjectAnswer.from_dict(projects_item_data)

            projects.append(projects_item)

        status = d.pop("status")

        _not_verified = d.pop("not_verified", UNSET)
        not_verified: list[UnverifiedPartitionAnswer] | Unset = UNSET
        if _not_verified is not UNSET:
            not_verified = []
            for not_verified_item_data in _not_verified:
                not_verified_item = UnverifiedPartitionAnswer.from_dict(
                    not_verified_item_data
                )

                not_verified.append(not_verified_item)

        verify_answer = cls(
            cells=cells,
            damaged=damaged,
            differing=differing,
            projects=projects,
            status=status,
            not_verified=not_verified,
        )

        return verify_answer
