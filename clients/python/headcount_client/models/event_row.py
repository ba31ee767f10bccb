from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="EventRow")


@_attrs_define
class EventRow:
    """A recorded event. Every column is there; those without a value are null.

    Attributes:
        acquisition_channel (None | str): The channel of the session. Null without one.
        anonymous_id (None | str): As recorded.
        browser (None | str): As recorded.
        browser_version (None | str): As recorded.
        channel (None | str): As recorded.
        company (None | str): As recorded.
        company_domain (None | str): As recorded.
        consent_source (None | str): As recorded.
        consented (bool): As recorded.
        currency (None | str): As recorded.
        day (datetime.date): The calendar day of `timestamp` in the organization's timezone.
        device (None | str): As recorded.
        email (None | str): As recorded.
        email_company (None | str): As recorded.
        entry_url (None | str): The page of the session's first event that has one, without query and fragment.
        event_campaign (None | str): As recorded.
        event_channel (None | str): As recorded.
        event_medium (None | str): As recorded.
        event_source (None | str): As recorded.
        external_id (None | str): As recorded.
        group_id (None | str): As recorded.
        group_type (None | str): As recorded.
        hostname (None | str): As recorded.
        id (str): The event's id, as the answer to it has it.
        identity_id (None | str): The identity, after links. Null without ids.
        interactive (bool): As recorded.
        language (None | str): As recorded.
        location_country (None | str): As recorded.
        message (None | str): As recorded.
        metadata (Any): The metadata: any JSON, as it was sent.
        name (str): As recorded.
        notify (bool | None): As recorded.
        organization_currency (None | str): As recorded.
        os (None | str): As recorded.
        position (int): The position in the order of recording. It rises, with gaps.
        privacy_categories (None | str): As recorded.
        privacy_signals (None | str): As recorded.
        project_currency (None | str): As recorded.
        received_at (datetime.datetime): An instant in UTC, with milliseconds.
        referrer (None | str): As recorded.
        referrer_host (None | str): As recorded.
        screen (None | str): As recorded.
        timestamp (datetime.datetime): An instant in UTC, with milliseconds.
        url (None | str): As recorded.
        user_id (None | str): As recorded.
        value (float | None): An exact amount with at most 6 decimals.
        value_counted (bool | None): As recorded.
        value_in_organization (float | None): An exact amount with at most 6 decimals.
        value_in_project (float | None): An exact amount with at most 6 decimals.
        visitor_id (None | str): 32 hexadecimal digits.
    """

    acquisition_channel: None | str
    anonymous_id: None | str
    browser: None | str
    browser_version: None | str
    channel: None | str
    company: None | str
    company_domain: None | str
    consent_source: None | str
    consented: bool
    currency: None | str
    day: datetime.date
    device: None | str
    email: None | str
    email_company: None | str
    entry_url: None | str
    event_campaign: None | str
    event_channel: None | str
    event_medium: None | str
    event_source: None | str
    external_id: None | str
    group_id: None | str
    group_type: None | str
    hostname: None | str
    id: str
    identity_id: None | str
    interactive: bool
    language: None | str
    location_country: None | str
    message: None | str
    metadata: Any
    name: str
    notify: bool | None
    organization_currency: None | str
    os: None | str
    position: int
    privacy_categories: None | str
    privacy_signals: None | str
    project_currency: None | str
    received_at: datetime.datetime
    referrer: None | str
    referrer_host: None | str
    screen: None | str
    timestamp: datetime.datetime
    url: None | str
    user_id: None | str
    value: float | None
    value_counted: bool | None
    value_in_organization: float | None
    value_in_project: float | None
    visitor_id: None | str

    def to_dict(self) -> dict[str, Any]:
        acquisition_channel: None | str
        acquisition_channel = self.acquisition_channel

        anonymous_id: None | str
        anonymous_id = self.anonymous_id

        browser: None | str
        browser = self.browser

        browser_version: None | str
        browser_version = self.browser_version

        channel: None | str
        channel = self.channel

        company: None | str
        company = self.company

        company_domain: None | str
        company_domain = self.company_domain

        consent_source: None | str
        consent_source = self.consent_source

        consented = self.consented

        currency: None | str
        currency = self.currency

        day = self.day.isoformat()

        device: None | str
        device = self.device

        email: None | str
        email = self.email

        email_company: None | str
        email_company = self.email_company

        entry_url: None | str
        entry_url = self.entry_url

        event_campaign: None | str
        event_campaign = self.event_campaign

        event_channel: None | str
        event_channel = self.event_channel

        event_medium: None | str
        event_medium = self.event_medium

        event_source: None | str
        event_source = self.event_source

        external_id: None | str
        external_id = self.external_id

        group_id: None | str
        group_id = self.group_id

        group_type: None | str
        group_type = self.group_type

        hostname: None | str
        hostname = self.hostname

        id = self.id

        identity_id: None | str
        identity_id = self.identity_id

        interactive = self.interactive

        language: None | str
        language = self.language

        location_country: None | str
        location_country = self.location_country

        message: None | str
        message = self.message

        metadata = self.metadata

        name = self.name

        notify: bool | None
        notify = self.notify

        organization_currency: None | str
        organization_currency = self.organization_currency

        os: None | str
        os = self.os

        position = self.position

        privacy_categories: None | str
        privacy_categories = self.privacy_categories

        privacy_signals: None | str
        privacy_signals = self.privacy_signals

        project_currency: None | str
        project_currency = self.project_currency

        received_at = self.received_at.isoformat()

        referrer: None | str
        referrer = self.referrer

        referrer_host: None | str
        referrer_host = self.referrer_host

        screen: None | str
        screen = self.screen

        timestamp = self.timestamp.isoformat()

        url: None | str
        url = self.url

        user_id: None | str
        user_id = self.user_id

        value: float | None
        value = self.value

        value_counted: bool | None
        value_counted = self.value_counted

        value_in_organization: float | None
        value_in_organization = self.value_in_organization

        value_in_project: float | None
        value_in_project = self.value_in_project

        visitor_id: None | str
        visitor_id = self.visitor_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "acquisition_channel": acquisition_channel,
                "anonymous_id": anonymous_id,
                "browser": browser,
                "browser_version": browser_version,
                "channel": channel,
                "company": company,
                "company_domain": company_domain,
                "consent_source": consent_source,
                "consented": consented,
                "currency": currency,
                "day": day,
                "device": device,
                "email": email,
                "email_company": email_company,
                "entry_url": entry_url,
                "event_campaign": event_campaign,
                "event_channel": event_channel,
                "event_medium": event_medium,
                "event_source": event_source,
                "external_id": external_id,
                "group_id": group_id,
                "group_type": group_type,
                "hostname": hostname,
                "id": id,
                "identity_id": identity_id,
                "interactive": interactive,
                "language": language,
                "location_country": location_country,
                "message": message,
                "metadata": metadata,
                "name": name,
                "notify": notify,
                "organization_currency": organization_currency,
                "os": os,
                "position": position,
                "privacy_categories": privacy_categories,
                "privacy_signals": privacy_signals,
                "project_currency": project_currency,
                "received_at": received_at,
                "referrer": referrer,
                "referrer_host": referrer_host,
                "screen": screen,
                "timestamp": timestamp,
                "url": url,
                "user_id": user_id,
                "value": value,
                "value_counted": value_counted,
                "value_in_organization": value_in_organization,
                "value_in_project": value_in_project,
                "visitor_id": visitor_id,
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

        def _parse_channel(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        channel = _parse_channel(d.pop("channel"))

        def _parse_company(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        company = _parse_company(d.pop("company"))

        def _parse_company_domain(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        company_domain = _parse_company_domain(d.pop("company_domain"))

        def _parse_consent_source(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        consent_source = _parse_consent_source(d.pop("consent_source"))

        consented = d.pop("consented")

        def _parse_currency(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        currency = _parse_currency(d.pop("currency"))

        day = datetime.date.fromisoformat(d.pop("day"))

        def _parse_device(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        device = _parse_device(d.pop("device"))

        def _parse_email(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        email = _parse_email(d.pop("email"))

        def _parse_email_company(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        email_company = _parse_email_company(d.pop("email_company"))

        def _parse_entry_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        entry_url = _parse_entry_url(d.pop("entry_url"))

        def _parse_event_campaign(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        event_campaign = _parse_event_campaign(d.pop("event_campaign"))

        def _parse_event_channel(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        event_channel = _parse_event_channel(d.pop("event_channel"))

        def _parse_event_medium(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        event_medium = _parse_event_medium(d.pop("event_medium"))

        def _parse_event_source(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        event_source = _parse_event_source(d.pop("event_source"))

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

        id = d.pop("id")

        def _parse_identity_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        identity_id = _parse_identity_id(d.pop("identity_id"))

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

        def _parse_organization_currency(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        organization_currency = _parse_organization_currency(
            d.pop("organization_currency")
        )

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

        def _parse_project_currency(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        project_currency = _parse_project_currency(d.pop("project_currency"))

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

        def _parse_value_counted(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        value_counted = _parse_value_counted(d.pop("value_counted"))

        def _parse_value_in_organization(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        value_in_organization = _parse_value_in_organization(
            d.pop("value_in_organization")
        )

        def _parse_value_in_project(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        value_in_project = _parse_value_in_project(d.pop("value_in_project"))

        def _parse_visitor_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        visitor_id = _parse_visitor_id(d.pop("visitor_id"))

        event_row = cls(
            acquisition_channel=acquisition_channel,
            anonymous_id=anonymous_id,
            browser=browser,
            browser_version=browser_version,
            channel=channel,
            company=company,
            company_domain=company_domain,
            consent_source=consent_source,
            consented=consented,
            currency=currency,
            day=day,
            device=device,
            email=email,
            email_company=email_company,
            entry_url=entry_url,
            event_campaign=event_campaign,
            event_channel=event_channel,
            event_medium=event_medium,
            event_source=event_source,
            external_id=external_id,
            group_id=group_id,
            group_type=group_type,
            hostname=hostname,
            id=id,
            identity_id=identity_id,
            interactive=interactive,
            language=language,
            location_country=location_country,
            message=message,
            metadata=metadata,
            name=name,
            notify=notify,
            organization_currency=organization_currency,
            os=os,
            position=position,
            privacy_categories=privacy_categories,
            privacy_signals=privacy_signals,
            project_currency=project_currency,
            received_at=received_at,
            referrer=referrer,
            referrer_host=referrer_host,
            screen=screen,
            timestamp=timestamp,
            url=url,
            user_id=user_id,
            value=value,
            value_counted=value_counted,
            value_in_organization=value_in_organization,
            value_in_project=value_in_project,
            visitor_id=visitor_id,
        )

        return event_row
