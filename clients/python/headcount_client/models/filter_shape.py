from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.filter_shape_operator import FilterShapeOperator
from ..types import UNSET, Unset

T = TypeVar("T", bound="FilterShape")


@_attrs_define
class FilterShape:
    """One condition on a property of events.

    Attributes:
        field (str): A built-in field (`browser`), or `metadata.` and a path (`metadata.plan.name`).
        operator (FilterShapeOperator): How the property is compared. The `not` forms hold for absent properties too.
        value (bool | float | list[bool | float | None | str] | None | str | Unset): What it is compared with: for `is`
            and `is_not` a scalar or a list of them (with its JSON type), for `contains` and `not_contains` a string (case
            is ignored), for `gt` to `lte` a number, for the others nothing.
    """

    field: str
    operator: FilterShapeOperator
    value: bool | float | list[bool | float | None | str] | None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        field = self.field

        operator = self.operator.value

        value: bool | float | list[bool | float | None | str] | None | str | Unset
        if isinstance(self.value, Unset):
            value = UNSET
        elif isinstance(self.value, list):
            value = []
            for value_type_4_item_data in self.value:
                value_type_4_item: bool | float | None | str
                value_type_4_item = value_type_4_item_data
                value.append(value_type_4_item)

        else:
            value = self.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "field": field,
                "operator": operator,
            }
        )
        if value is not UNSET:
            field_dict["value"] = value

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        field = d.pop("field")

        operator = FilterShapeOperator(d.pop("operator"))

        def _parse_value(
            data: object,
        ) -> bool | float | list[bool | float | None | str] | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                value_type_4 = []
                _value_type_4 = data
                for value_type_4_item_data in _value_type_4:

                    def _parse_value_type_4_item(
                        data: object,
                    ) -> bool | float | None | str:
                        if data is None:
                            return data
                        return cast(bool | float | None | str, data)

                    value_type_4_item = _parse_value_type_4_item(value_type_4_item_data)

                    value_type_4.append(value_type_4_item)

                return value_type_4
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(
                bool | float | list[bool | float | None | str] | None | str | Unset,
                data,
            )

        value = _parse_value(d.pop("value", UNSET))

        filter_shape = cls(
            field=field,
            operator=operator,
            value=value,
        )

        return filter_shape
