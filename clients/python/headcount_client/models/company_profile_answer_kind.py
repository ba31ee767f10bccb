from enum import StrEnum


class CompanyProfileAnswerKind(StrEnum):
    ACCOUNT = "account"
    SELF = "self"

    def __str__(self) -> str:
        return str(self.value)
