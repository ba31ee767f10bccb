from enum import StrEnum


class FilterShapeOperator(StrEnum):
    CONTAINS = "contains"
    GT = "gt"
    GTE = "gte"
    IS = "is"
    IS_NOT = "is_not"
    IS_NOT_SET = "is_not_set"
    IS_SET = "is_set"
    LT = "lt"
    LTE = "lte"
    NOT_CONTAINS = "not_contains"

    def __str__(self) -> str:
        return str(self.value)
