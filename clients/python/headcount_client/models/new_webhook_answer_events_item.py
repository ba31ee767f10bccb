from enum import StrEnum


class NewWebhookAnswerEventsItem(StrEnum):
    NOTIFICATION = "notification"

    def __str__(self) -> str:
        return str(self.value)
