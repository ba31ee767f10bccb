from enum import StrEnum


class FigureName(StrEnum):
    ATTRIBUTION = "attribution"
    ORDERS = "orders"
    REVENUE = "revenue"
    SESSIONS = "sessions"
    UNIQUE_USERS = "unique_users"

    def __str__(self) -> str:
        return str(self.value)
