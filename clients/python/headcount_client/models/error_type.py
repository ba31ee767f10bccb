from enum import StrEnum


class ErrorType(StrEnum):
    AUTHENTICATION = "authentication"
    CONFLICT = "conflict"
    GONE = "gone"
    INTERNAL = "internal"
    INVALID_REQUEST = "invalid_request"
    NOT_FOUND = "not_found"
    OVERLOADED = "overloaded"
    PERMISSION = "permission"
    RATE_LIMITED = "rate_limited"

    def __str__(self) -> str:
        return str(self.value)
