from enum import StrEnum


class TargetRowType(StrEnum):
    API_TOKEN = "api_token"
    COMPANY_PROFILE = "company_profile"
    MEMBER = "member"
    ORGANIZATION = "organization"
    PRIVACY_REQUEST = "privacy_request"
    PROJECT = "project"
    PUBLIC_KEY = "public_key"
    SHARE = "share"
    WEBHOOK = "webhook"

    def __str__(self) -> str:
        return str(self.value)
