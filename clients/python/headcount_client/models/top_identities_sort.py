from enum import StrEnum


class TopIdentitiesSort(StrEnum):
    EVENTS = "events"
    LAST_SEEN = "last_seen"
    REVENUE = "revenue"

    def __str__(self) -> str:
        return str(self.value)
