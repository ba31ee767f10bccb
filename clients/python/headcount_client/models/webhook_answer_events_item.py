from enum import StrEnum


class WebhookAnswerEventsItem(StrEnum):
    NOTIFICATION = "notification"

    def __str__(self) -> str:
        return str(self.value)
