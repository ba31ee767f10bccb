from enum import StrEnum


class EntityLevelName(StrEnum):
    ACCOUNT = "account"
    IDENTITY = "identity"

    def __str__(self) -> str:
        return str(self.value)
