from enum import StrEnum


class TouchModelName(StrEnum):
    FIRST_TOUCH = "first_touch"
    LAST_TOUCH = "last_touch"

    def __str__(self) -> str:
        return str(self.value)
