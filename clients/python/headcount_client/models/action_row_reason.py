from enum import StrEnum


class ActionRowReason(StrEnum):
    BUILD = "build"
    REFUND = "refund"
    SET = "set"

    def __str__(self) -> str:
        return str(self.value)
