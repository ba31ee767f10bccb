from enum import StrEnum


class PrivacyRequestAnswerType(StrEnum):
    ERASURE = "erasure"
    EXPORT = "export"
    OPT_IN = "opt_in"

    def __str__(self) -> str:
        return str(self.value)
