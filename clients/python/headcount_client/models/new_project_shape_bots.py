from enum import StrEnum


class NewProjectShapeBots(StrEnum):
    DROP = "drop"
    RECORD = "record"

    def __str__(self) -> str:
        return str(self.value)
