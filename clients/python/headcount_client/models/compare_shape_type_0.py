from enum import StrEnum


class CompareShapeType0(StrEnum):
    PREVIOUS_PERIOD = "previous_period"
    PREVIOUS_YEAR = "previous_year"

    def __str__(self) -> str:
        return str(self.value)
