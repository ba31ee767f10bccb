from enum import StrEnum


class WebhookPatchShapeEventsItem(StrEnum):
    NOTIFICATION = "notification"

    def __str__(self) -> str:
        return str(self.value)
