from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.cohort_of_users import CohortOfUsers


T = TypeVar("T", bound="RetentionAnswer")


@_attrs_define
class RetentionAnswer:
    """Who came back, by the interval of the first event.

    Attributes:
        cohorts (list[CohortOfUsers]): The newest cohort first, also those without anybody.
        interval (str): `week` or `month`.
        timezone (str): The timezone of the days.
        truncated (bool): Whether the first event of somebody is older than these cohorts.
    """

    cohorts: list[CohortOfUsers]
    interval: str
    timezone: str
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        cohorts = []
        for cohorts_item_data in self.cohorts:
            cohorts_item = cohorts_item_data.to_dict()
            cohorts.append(cohorts_item)

        interval = self.interval

        timezone = self.timezone

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cohorts": cohorts,
                "interval": interval,
                "timezone": timezone,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.cohort_of_users import CohortOfUsers

        d = dict(src_dict)
        cohorts = []
        _cohorts = d.pop("cohorts")
        for cohorts_item_data in _cohorts:
            cohorts_item = CohortOfUsers.from_dict(cohorts_item_data)

            cohorts.append(cohorts_item)

        interval = d.pop("interval")

        timezone = d.pop("timezone")

        truncated = d.pop("truncated")

        retention_answer = cls(
            cohorts=cohorts,
            interval=interval,
            timezone=timezone,
            truncated=truncated,
        )

        return retention_answer
