from enum import StrEnum


class ProjectAnswerBots(StrEnum):
    DROP = "drop"
    RECORD = "record"

    def __str__(self) -> str:
        return str(self.value)
