from enum import StrEnum


class SessionAnswerScopesItem(StrEnum):
    ADMIN = "admin"
    ANALYTICSREAD = "analytics:read"
    COMPANIESREAD = "companies:read"
    COMPANIESWRITE = "companies:write"
    EVENTSREAD = "events:read"
    EVENTSWRITE = "events:write"
    GROUPSREAD = "groups:read"
    IDENTITIESREAD = "identities:read"
    PRIVACY_REQUESTSREAD = "privacy_requests:read"
    PRIVACY_REQUESTSWRITE = "privacy_requests:write"
    REVENUEREAD = "revenue:read"

    def __str__(self) -> str:
        return str(self.value)
