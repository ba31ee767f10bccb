from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.compare_shape_type_0 import CompareShapeType0
from ..models.order_by_name import OrderByName
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.compare_shape_type_1 import CompareShapeType1
    from ..models.filter_shape import FilterShape


T = TypeVar("T", bound="BreakdownBody")


@_attrs_define
class BreakdownBody:
    """Which figures are asked for, and by which property. Events are chosen by the window, the name and the filters.

    Example:
        {'compare': 'previous_year', 'dimension': 'source', 'end_date': '2024-03-31', 'event_name': 'pageview',
            'filters': [{'field': 'device', 'operator': 'is', 'value': 'mobile'}], 'limit': 20, 'order_by': 'sessions',
            'search': 'goo', 'start_date': '2024-03-01'}

    Attributes:
        dimension (str): A built-in field, `source`, `medium`, `campaign`, `exit_url`, or `metadata.` and a path.
        compare (CompareShapeType0 | CompareShapeType1 | None | Unset):
        end_date (None | str | Unset): The last day. Default: today.
        event_name (None | str | Unset): Only events of this name.
        filters (list[FilterShape] | None | Unset): Only events for which all of these hold; at most 20. `source`,
            `medium`, `campaign` and `exit_url` may be fields too.
        limit (int | None | Unset): The most rows to return. Default: 100.
        order_by (None | OrderByName | Unset):
        search (None | str | Unset): Only rows whose value contains this text, ignoring case.
        start_date (None | str | Unset): The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days
            before today.
    """

    dimension: str
    compare: CompareShapeType0 | CompareShapeType1 | None | Unset = UNSET
    end_date: None | str | Unset = UNSET
    event_name: None | str | Unset = UNSET
    filters: list[FilterShape] | None | Unset = UNSET
    limit: int | None | Unset = 100
    order_by: None | OrderByName | Unset = UNSET
    search: None | str | Unset = UNSET
    start_date: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.compare_shape_type_1 import CompareShapeType1

        dimension = self.dimension

        compare: dict[str, Any] | None | str | Unset
        if isinstance(self.compare, Unset):
            compare = UNSET
        elif isinstance(self.compare, CompareShapeType0):
            compare = self.compare.value
        elif isinstance(self.compare, CompareShapeType1):
            compare = self.compare.to_dict()
        else:
            compare = self.compare

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

        limit: int | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        order_by: None | str | Unset
        if isinstance(self.order_by, Unset):
            order_by = UNSET
        elif isinstance(self.order_by, OrderByName):
            order_by = self.order_by.value
        else:
            order_by = self.order_by

        search: None | str | Unset
        if isinstance(self.search, Unset):
            search = UNSET
        else:
            search = self.search

        start_date: None | str | Unset
        if isinstance(self.start_date, Unset):
            start_date = UNSET
        else:
            start_date = self.start_date

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "dimension": dimension,
            }
        )
        if compare is not UNSET:
            field_dict["compare"] = compare
        if end_date is not UNSET:
            field_dict["end_date"] = end_date
        if event_name is not UNSET:
            field_dict["event_name"] = event_name
        if filters is not UNSET:
            field_dict["filters"] = filters
        if limit is not UNSET:
            field_dict["limit"] = limit
        if order_by is not UNSET:
            field_dict["order_by"] = order_by
        if search is not UNSET:
            field_dict["search"] = search
        if start_date is not UNSET:
            field_dict["start_date"] = start_date

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.compare_shape_type_1 import CompareShapeType1
        from ..models.filter_shape import FilterShape

        d = dict(src_dict)
        dimension = d.pop("dimension")

        def _parse_compare(
            data: object,
        ) -> CompareShapeType0 | CompareShapeType1 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                componentsschemas_compare_shape_type_0 = CompareShapeType0(data)

                return componentsschemas_compare_shape_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_compare_shape_type_1 = CompareShapeType1.from_dict(
                    data
                )

                return componentsschemas_compare_shape_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompareShapeType0 | CompareShapeType1 | None | Unset, data)

        compare = _parse_compare(d.pop("compare", UNSET))

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

        def _parse_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_order_by(data: object) -> None | OrderByName | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                order_by_type_0 = OrderByName(data)

                return order_by_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OrderByName | Unset, data)

        order_by = _parse_order_by(d.pop("order_by", UNSET))

        def _parse_search(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        search = _parse_search(d.pop("search", UNSET))

        def _parse_start_date(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        start_date = _parse_start_date(d.pop("start_date", UNSET))

        breakdown_body = cls(
            dimension=dimension,
            compare=compare,
            end_date=end_date,
            event_name=event_name,
            filters=filters,
            limit=limit,
            order_by=order_by,
            search=search,
            start_date=start_date,
        )

        return breakdown_body
