from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.filter_shape import FilterShape


T = TypeVar("T", bound="UniqueUsersQuestion")


@_attrs_define
class UniqueUsersQuestion:
    """What unique users are asked for.

    Example:
        {'event_name': 'pageview', 'filters': [{'field': 'browser', 'operator': 'is', 'value': 'Firefox'}]}

    Attributes:
        end_date (None | str | Unset): The last day. Default: today.
        event_name (None | str | Unset): Only users with an event of this name.
        filters (list[FilterShape] | None | Unset): Only users with an event for which all of these hold; at most 20.
        start_date (None | str | Unset): The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days
            before today.
    """

    end_date: None | str | Unset = UNSET
    event_name: None | str | Unset = UNSET
    filters: list[FilterShape] | None | Unset = UNSET
    start_date: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        end_date: None | str | Unset
        if isinstance(self.end_date, Unset):
            end_date = UNSET
        else:
            end_date = self.end_date

        event_name: None | str | Unset
        if isinstance(self.event_name, Unset):
            event_name = UNSET
        else:
            event_name = self.event_name

        filters: list[dict[str, Any]] | None | Unset
        if isinstance(self.filters, Unset):
            filters = UNSET
        elif isinstance(self.filters, list):
            filters = []
            for filters_type_0_item_data in self.filters:
                filters_type_0_item = filters_type_0_item_data.to_dict()
                filters.append(filters_type_0_item)

        else:
            filters = self.filters

        start_date: None | str | Unset
        if isinstance(self.start_date, Unset):
            start_date = UNSET
        else:
            start_date = self.start_date

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if end_date is not UNSET:
            field_dict["end_date"] = end_date
        if event_name is not UNSET:
            field_dict["event_name"] = event_name
        if filters is not UNSET:
            field_dict["filters"] = filters
        if start_date is not UNSET:
            field_dict["start_date"] = start_date

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.filter_shape import FilterShape

        d = dict(src_dict)

        def _parse_end_date(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        end_date = _parse_end_date(d.pop("end_date", UNSET))

        def _parse_event_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        event_name = _parse_event_name(d.pop("event_name", UNSET))

        def _parse_filters(data: object) -> list[FilterShape] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                filters_type_0 = []
                _filters_type_0 = data
                for filters_type_0_item_data in _filters_type_0:
                    filters_type_0_item = FilterShape.from_dict(
                        filters_type_0_item_data
                    )

                    filters_type_0.append(filters_type_0_item)

                return filters_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[FilterShape] | None | Unset, data)

        filters = _parse_filters(d.pop("filters", UNSET))

        def _parse_start_date(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        start_date = _parse_start_date(d.pop("start_date", UNSET))

        unique_users_question = cls(
            end_date=end_date,
            event_name=event_name,
            filters=filters,
            start_date=start_date,
        )

        return unique_users_question
