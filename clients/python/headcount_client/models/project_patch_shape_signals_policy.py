from enum import StrEnum


class ProjectPatchShapeSignalsPolicy(StrEnum):
    ANONYMIZE = "anonymize"
    DROP = "drop"
    RECORD = "record"

    def __str__(self) -> str:
        return str(self.value)
