from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.dimension_name import DimensionName
from ..models.entity_level_name import EntityLevelName
from ..models.figure_name import FigureName
from ..models.touch_model_name import TouchModelName
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.filter_shape import FilterShape


T = TypeVar("T", bound="ExplainBody")


@_attrs_define
class ExplainBody:
    """Which figure is explained. Events are chosen by the window, the name and the filters.

    Example:
        {'dimension': 'source', 'end_date': '2024-03-31', 'event_name': 'order', 'figure': 'attribution', 'filters':
            [{'field': 'device', 'operator': 'is', 'value': 'mobile'}], 'level': 'identity', 'limit': 50, 'model':
            'last_touch', 'start_date': '2024-03-01', 'value': 'google'}

    Attributes:
        figure (FigureName):
        cursor (None | str | Unset): `next` of the page before, with the same other fields; `limit` may differ. It lives
            for 15 minutes from the first page on, and ends with a
            restart of the server and an erasure: `cursor_expired`.
        dimension (DimensionName | None | Unset):
        end_date (None | str | Unset): The last day. Default: today.
        event_name (None | str | Unset): Only events of this name.
        filters (list[FilterShape] | None | Unset): Only events for which all of these hold; at most 20. `source`,
            `medium`, `campaign` and `exit_url` may be fields too.
        level (EntityLevelName | None | Unset):
        limit (int | None | Unset): The most events of each list. Default: 100.
        model (None | TouchModelName | Unset):
        start_date (None | str | Unset): The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days
            before today.
        value (None | str | Unset): `attribution`: only money under this source, medium or campaign. Default: all.
    """

    figure: FigureName
    cursor: None | str | Unset = UNSET
    dimension: DimensionName | None | Unset = UNSET
    end_date: None | str | Unset = UNSET
    event_name: None | str | Unset = UNSET
    filters: list[FilterShape] | None | Unset = UNSET
    level: EntityLevelName | None | Unset = UNSET
    limit: int | None | Unset = 100
    model: None | TouchModelName | Unset = UNSET
    start_date: None | str | Unset = UNSET
    value: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        figure = self.figure.value

        cursor: None | str | Unset
        if isinstance(self.cursor, Unset):
            cursor = UNSET
        else:
            cursor = self.cursor

        dimension: None | str | Unset
        if isinstance(self.dimension, Unset):
            dimension = UNSET
        elif isinstance(self.dimension, DimensionName):
            dimension = self.dimension.value
        else:
            dimension = self.dimension

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

        level: None | str | Unset
        if isinstance(self.level, Unset):
            level = UNSET
        elif isinstance(self.level, EntityLevelName):
            level = self.level.value
        else:
            level = self.level

        limit: int | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        model: None | str | Unset
        if isinstance(self.model, Unset):
            model = UNSET
        elif isinstance(self.model, TouchModelName):
            model = self.model.value
        else:
            model = self.model

        start_date: None | str | Unset
        if isinstance(self.start_date, Unset):
            start_date = UNSET
        else:
            start_date = self.start_date

        value: None | str | Unset
        if isinstance(self.value, Unset):
            value = UNSET
        else:
            value = self.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "figure": figure,
            }
        )
        if cursor is not UNSET:
            field_dict["cursor"] = cursor
        if dimension is not UNSET:
            field_dict["dimension"] = dimension
        if end_date is not UNSET:
            field_dict["end_date"] = end_date
        if event_name is not UNSET:
            field_dict["event_name"] = event_name
        if filters is not UNSET:
            field_dict["filters"] = filters
        if level is not UNSET:
            field_dict["level"] = level
        if limit is not UNSET:
            field_dict["limit"] = limit
        if model is not UNSET:
            field_dict["model"] = model
        if start_date is not UNSET:
            field_dict["start_date"] = start_date
        if value is not UNSET:
            field_dict["value"] = value

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.filter_shape import FilterShape

        d = dict(src_dict)
        figure = FigureName(d.pop("figure"))

        def _parse_cursor(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cursor = _parse_cursor(d.pop("cursor", UNSET))

        def _parse_dimension(data: object) -> DimensionName | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                dimension_type_0 = DimensionName(data)

                return dimension_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DimensionName | None | Unset, data)

        dimension = _parse_dimension(d.pop("dimension", UNSET))

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

        def _parse_level(data: object) -> EntityLevelName | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                level_type_0 = EntityLevelName(data)

                return level_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EntityLevelName | None | Unset, data)

        level = _parse_level(d.pop("level", UNSET))

        def _parse_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_model(data: object) -> None | TouchModelName | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                model_type_0 = TouchModelName(data)

                return model_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TouchModelName | Unset, data)

        model = _parse_model(d.pop("model", UNSET))

        def _parse_start_date(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        start_date = _parse_start_date(d.pop("start_date", UNSET))

        def _parse_value(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        value = _parse_value(d.pop("value", UNSET))

        explain_body = cls(
            figure=figure,
            cursor=cursor,
            dimension=dimension,
            end_date=end_date,
            event_name=event_name,
            filters=filters,
            level=level,
            limit=limit,
            model=model,
            start_date=start_date,
            value=value,
        )

        return explain_body
