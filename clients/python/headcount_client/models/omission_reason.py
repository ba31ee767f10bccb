from enum import StrEnum


class OmissionReason(StrEnum):
    BEGAN_BEFORE = "began_before"
    NO_CONSENT = "no_consent"
    NO_RATE = "no_rate"
    NO_SESSION = "no_session"
    REFUND = "refund"
    SERVER_ONLY = "server_only"

    def __str__(self) -> str:
        return str(self.value)
