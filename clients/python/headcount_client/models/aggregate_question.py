from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.built_in_name import BuiltInName
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.filter_shape import FilterShape


T = TypeVar("T", bound="AggregateQuestion")


@_attrs_define
class AggregateQuestion:
    """What is grouped. Exactly one of `group_by` and `metadata_field` is given.

    Example:
        {'end_date': '2024-03-31', 'event_name': 'upgraded', 'filters': [{'field': 'acquisition_channel', 'operator':
            'is', 'value': 'Organic Search'}], 'limit': 20, 'metadata_field': 'plan', 'start_date': '2024-03-01',
            'sum_metadata_field': 'seats'}

    Attributes:
        start_date (str): The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it.
        end_date (None | str | Unset): The last day. Default: today.
        event_name (None | str | Unset): Only events of this name.
        filters (list[FilterShape] | None | Unset): Only events for which all of these hold; at most 20.
        group_by (BuiltInName | None | Unset):
        limit (int | None | Unset): The most groups to return. Default: 100.
        metadata_field (None | str | Unset):
        sum_metadata_field (None | str | Unset):
    """

    start_date: str
    end_date: None | str | Unset = UNSET
    event_name: None | str | Unset = UNSET
    filters: list[FilterShape] | None | Unset = UNSET
    group_by: BuiltInName | None | Unset = UNSET
    limit: int | None | Unset = 100
    metadata_field: None | str | Unset = UNSET
    sum_metadata_field: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        start_date = self.start_date

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

        group_by: None | str | Unset
        if isinstance(self.group_by, Unset):
            group_by = UNSET
        elif isinstance(self.group_by, BuiltInName):
            group_by = self.group_by.value
        else:
            group_by = self.group_by

        limit: int | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        metadata_field: None | str | Unset
        if isinstance(self.metadata_field, Unset):
            metadata_field = UNSET
        else:
            metadata_field = self.metadata_field

        sum_metadata_field: None | str | Unset
        if isinstance(self.sum_metadata_field, Unset):
            sum_metadata_field = UNSET
        else:
            sum_metadata_field = self.sum_metadata_field

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "start_date": start_date,
            }
        )
        if end_date is not UNSET:
            field_dict["end_date"] = end_date
        if event_name is not UNSET:
            field_dict["event_name"] = event_name
        if filters is not UNSET:
            field_dict["filters"] = filters
        if group_by is not UNSET:
            field_dict["group_by"] = group_by
        if limit is not UNSET:
            field_dict["limit"] = limit
        if metadata_field is not UNSET:
            field_dict["metadata_field"] = metadata_field
        if sum_metadata_field is not UNSET:
            field_dict["sum_metadata_field"] = sum_metadata_field

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.filter_shape import FilterShape

        d = dict(src_dict)
        start_date = d.pop("start_date")

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

        def _parse_group_by(data: object) -> BuiltInName | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                group_by_type_0 = BuiltInName(data)

                return group_by_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BuiltInName | None | Unset, data)

        group_by = _parse_group_by(d.pop("group_by", UNSET))

        def _parse_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_metadata_field(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        metadata_field = _parse_metadata_field(d.pop("metadata_field", UNSET))

        def _parse_sum_metadata_field(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        sum_metadata_field = _parse_sum_metadata_field(
            d.pop("sum_metadata_field", UNSET)
        )

        aggregate_question = cls(
            start_date=start_date,
            end_date=end_date,
            event_name=event_name,
            filters=filters,
            group_by=group_by,
            limit=limit,
            metadata_field=metadata_field,
            sum_metadata_field=sum_metadata_field,
        )

        return aggregate_question
