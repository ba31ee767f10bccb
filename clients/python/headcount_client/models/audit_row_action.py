from enum import StrEnum


class AuditRowAction(StrEnum):
    API_TOKEN_CREATED = "api_token.created"
    API_TOKEN_REVOKED = "api_token.revoked"
    API_TOKEN_UPDATED = "api_token.updated"
    COMPANY_PROFILE_CREATED = "company_profile.created"
    COMPANY_PROFILE_DELETED = "company_profile.deleted"
    COMPANY_PROFILE_UPDATED = "company_profile.updated"
    MEMBER_CREATED = "member.created"
    MEMBER_REMOVED = "member.removed"
    MEMBER_UPDATED = "member.updated"
    ORGANIZATION_CREATED = "organization.created"
    ORGANIZATION_UPDATED = "organization.updated"
    PRIVACY_REQUEST_CREATED = "privacy_request.created"
    PROJECT_CREATED = "project.created"
    PROJECT_DELETED = "project.deleted"
    PROJECT_UPDATED = "project.updated"
    PUBLIC_KEY_CREATED = "public_key.created"
    PUBLIC_KEY_DELETED = "public_key.deleted"
    PUBLIC_KEY_UPDATED = "public_key.updated"
    SHARE_CREATED = "share.created"
    SHARE_REVOKED = "share.revoked"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_REPLAYED = "webhook.replayed"
    WEBHOOK_SECRET_ROTATED = "webhook.secret_rotated"
    WEBHOOK_UPDATED = "webhook.updated"

    def __str__(self) -> str:
        return str(self.value)
