from enum import StrEnum


class ListPrivacyRequestsType(StrEnum):
    ERASURE = "erasure"
    EXPORT = "export"
    OPT_IN = "opt_in"

    def __str__(self) -> str:
        return str(self.value)
