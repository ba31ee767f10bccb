from enum import StrEnum


class ActorRowKind(StrEnum):
    CLI = "cli"
    ROOT = "root"
    SYSTEM = "system"
    TOKEN = "token"

    def __str__(self) -> str:
        return str(self.value)
