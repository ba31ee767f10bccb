from enum import StrEnum


class NewWebhookShapeEventsItem(StrEnum):
    NOTIFICATION = "notification"

    def __str__(self) -> str:
        return str(self.value)
