from enum import StrEnum


class RetentionInterval(StrEnum):
    MONTH = "month"
    WEEK = "week"

    def __str__(self) -> str:
        return str(self.value)
