from enum import StrEnum


class OrderByName(StrEnum):
    EVENTS = "events"
    ORDERS = "orders"
    PAGEVIEWS = "pageviews"
    REVENUE = "revenue"
    SESSIONS = "sessions"
    UNIQUE_USERS = "unique_users"

    def __str__(self) -> str:
        return str(self.value)
