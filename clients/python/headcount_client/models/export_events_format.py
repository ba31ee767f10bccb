from enum import StrEnum


class ExportEventsFormat(StrEnum):
    CSV = "csv"
    NDJSON = "ndjson"
    PARQUET = "parquet"

    def __str__(self) -> str:
        return str(self.value)
