from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="PrivacyArtifactShapeEventsItem")


@_attrs_define
class PrivacyArtifactShapeEventsItem:
    """An event, as it is stored.

    Attributes:
        acquisition_channel (None | str): The event's own channel group.
        amount (float | None): The money in the project's currency.
        anonymous_id (None | str): The anonymous id.
        browser (None | str): The browser.
        browser_version (None | str): The browser's version.
        campaign (None | str): The event's own campaign.
        channel (None | str): The channel, as it was sent.
        company_id (None | str): The company.
        consent_source (None | str): Where the consent was given.
        counted (bool | None): Whether the money counts.
        currency (None | str): Its currency.
        device (None | str): The kind of device.
        event_id (str): The event's id.
        external_id (None | str): The sender's id of the event.
        group_id (None | str): The key of its group.
        group_type (None | str): The type of its group.
        hostname (None | str): The page's host.
        identity_id (str): Whose it is.
        interactive (bool): Whether somebody did something at its time: only such events make sessions.
        language (None | str): The language.
        location_country (None | str): The country.
        medium (None | str): The event's own medium.
        message (None | str): The text of a notification.
        metadata (Any): What the sender added.
        name (str): Its name.
        notify (bool | None): Whether it is a notification.
        os (None | str): The operating system.
        position (int): Its position in the project.
        privacy_categories (None | str): The categories that were granted.
        privacy_signals (None | str): The privacy signals.
        project_id (str): Its project.
        received_at (datetime.datetime): When it was received.
        referrer (None | str): Where the visitor came from.
        referrer_host (None | str): The host of an external referrer.
        screen (None | str): The size of the screen.
        source (None | str): The event's own source, not its session's.
        timestamp (datetime.datetime): When it happened.
        url (None | str): The page.
        user_id (None | str): The user's id.
        value (float | None): The money, as it was sent.
    """

    acquisition_channel: None | str
    amount: float | None
    anonymous_id: None | str
    browser: None | str
    browser_version: None | str
    campaign: None | str
    channel: None | str
    company_id: None | str
    consent_source: None | str
    counted: bool | None
    currency: None | str
    device: None | str
    event_id: str
    external_id: None | str
    group_id: None | str
    group_type: None | str
    hostname: None | str
    identity_id: str
    interactive: bool
    language: None | str
    location_country: None | str
    medium: None | str
    message: None | str
    metadata: Any
    name: str
    notify: bool | None
    os: None | str
    position: int
    privacy_categories: None | str
    privacy_signals: None | str
    project_id: str
    received_at: datetime.datetime
    referrer: None | str
    referrer_host: None | str
    screen: None | str
    source: None | str
    timestamp: datetime.datetime
    url: None | str
    user_id: None | str
    value: float | None

    def to_dict(self) -> dict[str, Any]:
        acquisition_channel: None | str
        acquisition_channel = self.acquisition_channel

        amount: float | None
        amount = self.amount

        anonymous_id: None | str
        anonymous_id = self.anonymous_id

        browser: None | str
        browser = self.browser

        browser_version: None | str
        browser_version = self.browser_version

        campaign: None | str
        campaign = self.campaign

        channel: None | str
        channel = self.channel

        company_id: None | str
        company_id = self.company_id

        consent_source: None | str
        consent_source = self.consent_source

        counted: bool | None
        counted = self.counted

        currency: None | str
        currency = self.currency

        device: None | str
        device = self.device

        event_id = self.event_id

        external_id: None | str
        external_id = self.external_id

        group_id: None | str
        group_id = self.group_id

        group_type: None | str
        group_type = self.group_type

        hostname: None | str
        hostname = self.hostname

        identity_id = self.identity_id

        interactive = self.interactive

        language: None | str
        language = self.language

        location_country: None | str
        location_country = self.location_country

        medium: None | str
        medium = self.medium

        message: None | str
        message = self.message

        metadata = self.metadata

        name = self.name

        notify: bool | None
        notify = self.notify

        os: None | str
        os = self.os

        position = self.position

        privacy_categories: None | str
        privacy_categories = self.privacy_categories

        privacy_signals: None | str
        privacy_signals = self.privacy_signals

        project_id = self.project_id

        received_at = self.received_at.isoformat()

        referrer: None | str
        referrer = self.referrer

        referrer_host: None | str
        referrer_host = self.referrer_host

        screen: None | str
        screen = self.screen

        source: None | str
        source = self.source

        timestamp = self.timestamp.isoformat()

        url: None | str
        url = self.url

        user_id: None | str
        user_id = self.user_id

        value: float | None
        value = self.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "acquisition_channel": acquisition_channel,
                "amount": amount,
                "anonymous_id": anonymous_id,
                "browser": browser,
                "browser_version": browser_version,
                "campaign": campaign,
                "channel": channel,
                "company_id": company_id,
                "consent_source": consent_source,
                "counted": counted,
                "currency": currency,
                "device": device,
                "event_id": event_id,
                "external_id": external_id,
                "group_id": group_id,
                "group_type": group_type,
                "hostname": hostname,
                "identity_id": identity_id,
                "interactive": interactive,
                "language": language,
                "location_country": location_country,
                "medium": medium,
                "message": message,
                "metadata": metadata,
                "name": name,
                "notify": notify,
                "os": os,
                "position": position,
                "privacy_categories": privacy_categories,
                "privacy_signals": privacy_signals,
                "project_id": project_id,
                "received_at": received_at,
                "referrer": referrer,
                "referrer_host": referrer_host,
                "screen": screen,
                "source": source,
                "timestamp": timestamp,
                "url": url,
                "user_id": user_id,
                "value": value,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_acquisition_channel(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        acquisition_channel = _parse_acquisition_channel(d.pop("acquisition_channel"))

        def _parse_amount(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        amount = _parse_amount(d.pop("amount"))

        def _parse_anonymous_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        anonymous_id = _parse_anonymous_id(d.pop("anonymous_id"))

        def _parse_browser(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        browser = _parse_browser(d.pop("browser"))

        def _parse_browser_version(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        browser_version = _parse_browser_version(d.pop("browser_version"))

        def _parse_campaign(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        campaign = _parse_campaign(d.pop("campaign"))

        def _parse_channel(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        channel = _parse_channel(d.pop("channel"))

        def _parse_company_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        company_id = _parse_company_id(d.pop("company_id"))

        def _parse_consent_source(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        consent_source = _parse_consent_source(d.pop("consent_source"))

        def _parse_counted(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        counted = _parse_counted(d.pop("counted"))

        def _parse_currency(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        currency = _parse_currency(d.pop("currency"))

        def _parse_device(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        device = _parse_device(d.pop("device"))

        event_id = d.pop("event_id")

        def _parse_external_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        external_id = _parse_external_id(d.pop("external_id"))

        def _parse_group_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        group_id = _parse_group_id(d.pop("group_id"))

        def _parse_group_type(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        group_type = _parse_group_type(d.pop("group_type"))

        def _parse_hostname(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        hostname = _parse_hostname(d.pop("hostname"))

        identity_id = d.pop("identity_id")

        interactive = d.pop("interactive")

        def _parse_language(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        language = _parse_language(d.pop("language"))

        def _parse_location_country(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        location_country = _parse_location_country(d.pop("location_country"))

        def _parse_medium(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        medium = _parse_medium(d.pop("medium"))

        def _parse_message(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        message = _parse_message(d.pop("message"))

        metadata = d.pop("metadata")

        name = d.pop("name")

        def _parse_notify(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        notify = _parse_notify(d.pop("notify"))

        def _parse_os(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        os = _parse_os(d.pop("os"))

        position = d.pop("position")

        def _parse_privacy_categories(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        privacy_categories = _parse_privacy_categories(d.pop("privacy_categories"))

        def _parse_privacy_signals(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        privacy_signals = _parse_privacy_signals(d.pop("privacy_signals"))

        project_id = d.pop("project_id")

        received_at = datetime.datetime.fromisoformat(d.pop("received_at"))

        def _parse_referrer(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        referrer = _parse_referrer(d.pop("referrer"))

        def _parse_referrer_host(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        referrer_host = _parse_referrer_host(d.pop("referrer_host"))

        def _parse_screen(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        screen = _parse_screen(d.pop("screen"))

        def _parse_source(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        source = _parse_source(d.pop("source"))

        timestamp = datetime.datetime.fromisoformat(d.pop("timestamp"))

        def _parse_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        url = _parse_url(d.pop("url"))

        def _parse_user_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        user_id = _parse_user_id(d.pop("user_id"))

        def _parse_value(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        value = _parse_value(d.pop("value"))

        privacy_artifact_shape_events_item = cls(
            acquisition_channel=acquisition_channel,
            amount=amount,
            anonymous_id=anonymous_id,
            browser=browser,
            browser_version=browser_version,
            campaign=campaign,
            channel=channel,
            company_id=company_id,
            consent_source=consent_source,
            counted=counted,
            currency=currency,
            device=device,
            event_id=event_id,
            external_id=external_id,
            group_id=group_id,
            group_type=group_type,
            hostname=hostname,
            identity_id=identity_id,
            interactive=interactive,
            language=language,
            location_country=location_country,
            medium=medium,
            message=message,
            metadata=metadata,
            name=name,
            notify=notify,
            os=os,
            position=position,
            privacy_categories=privacy_categories,
            privacy_signals=privacy_signals,
            project_id=project_id,
            received_at=received_at,
            referrer=referrer,
            referrer_host=referrer_host,
            screen=screen,
            source=source,
            timestamp=timestamp,
            url=url,
            user_id=user_id,
            value=value,
        )

        return privacy_artifact_shape_events_item
