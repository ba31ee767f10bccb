from enum import StrEnum


class ContributionReason(StrEnum):
    DIRECT = "direct"
    FIRST_OF_SESSION = "first_of_session"
    FIRST_OF_USER = "first_of_user"
    ORDER = "order"
    REFUND = "refund"
    TOUCH = "touch"

    def __str__(self) -> str:
        return str(self.value)
