from enum import StrEnum


class TrackStatus(StrEnum):
    DROPPED = "dropped"
    DUPLICATE = "duplicate"
    RECORDED = "recorded"

    def __str__(self) -> str:
        return str(self.value)
