from enum import StrEnum


class BuiltInName(StrEnum):
    ACQUISITION_CHANNEL = "acquisition_channel"
    BROWSER = "browser"
    BROWSER_VERSION = "browser_version"
    CHANNEL = "channel"
    CONSENT_SOURCE = "consent_source"
    CURRENCY = "currency"
    DEVICE = "device"
    ENTRY_URL = "entry_url"
    GROUP_ID = "group_id"
    GROUP_TYPE = "group_type"
    HOSTNAME = "hostname"
    LANGUAGE = "language"
    LOCATION_COUNTRY = "location_country"
    NAME = "name"
    OS = "os"
    PATH = "path"
    REFERRER = "referrer"
    SCREEN = "screen"
    URL = "url"
    USER_ID = "user_id"
    UTM_CAMPAIGN = "utm_campaign"
    UTM_CONTENT = "utm_content"
    UTM_MEDIUM = "utm_medium"
    UTM_SOURCE = "utm_source"
    UTM_TERM = "utm_term"

    def __str__(self) -> str:
        return str(self.value)
