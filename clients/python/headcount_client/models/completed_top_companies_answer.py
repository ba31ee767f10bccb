from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.company_row import CompanyRow


T = TypeVar("T", bound="CompletedTopCompaniesAnswer")


@_attrs_define
class CompletedTopCompaniesAnswer:
    """The most active companies.

    Attributes:
        companies (list[CompanyRow]): Those with events in the range, the most active first.
        complete_from (datetime.date | None): From this day on, all projects keep their events; null if they keep those
            of all days of the window.
        truncated (bool): Whether there are more.
    """

    companies: list[CompanyRow]
    complete_from: datetime.date | None
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        companies = []
        for companies_item_data in self.companies:
            companies_item = companies_item_data.to_dict()
            companies.append(companies_item)

        complete_from: None | str
        if isinstance(self.complete_from, datetime.date):
            complete_from = self.complete_from.isoformat()
        else:
            complete_from = self.complete_from

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "companies": companies,
                "complete_from": complete_from,
                "truncated": truncated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.company_row import CompanyRow

        d = dict(src_dict)
        companies = []
        _companies = d.pop("companies")
        for companies_item_data in _companies:
            companies_item = CompanyRow.from_dict(companies_item_data)

            companies.append(companies_item)

        def _parse_complete_from(data: object) -> datetime.date | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                complete_from_type_0 = datetime.date.fromisoformat(data)

                return complete_from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.date | None, data)

        complete_from = _parse_complete_from(d.pop("complete_from"))

        truncated = d.pop("truncated")

        completed_top_companies_answer = cls(
            companies=companies,
            complete_from=complete_from,
            truncated=truncated,
        )

        return completed_top_companies_answer
