from enum import StrEnum


class OrganizationPatchShapeCapabilitiesItem(StrEnum):
    TARGET_ACCOUNTS = "target_accounts"

    def __str__(self) -> str:
        return str(self.value)
