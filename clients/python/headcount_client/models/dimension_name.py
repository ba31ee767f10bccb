from enum import StrEnum


class DimensionName(StrEnum):
    CAMPAIGN = "campaign"
    MEDIUM = "medium"
    SOURCE = "source"

    def __str__(self) -> str:
        return str(self.value)
