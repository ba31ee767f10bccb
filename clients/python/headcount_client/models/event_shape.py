from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.overrides_shape import OverridesShape


T = TypeVar("T", bound="EventShape")


@_attrs_define
class EventShape:
    """Something that happened. Fields that are not listed are ignored; null and empty text are as if absent, but for
    `privacy_categories` and `pc`. An event is refused without a usable `name`, for a `timestamp` that is no time, and
    for an `external_id` that is too long; whatever else is wrong costs a detail, which `warnings` in the answer names.

        Attributes:
            name (str): What happened: `pageview`, `signup`, `order` …
            field_ac_overrides (None | OverridesShape | Unset): Where the visitor came from, instead of what url and
                referrer say.
            field_sent_at (float | None | str | Unset): When it was sent, by the clock of `timestamp`, which may be wrong:
                the event then happened as long before its receipt as lies between the two. Ignored without a `timestamp`, or if
                it is no time.
            anonymous_id (None | str | Unset): Who, before the user is known. With both ids the event links them.
            channel (None | str | Unset): Where to send the notification.
            consent_source (None | str | Unset): What asked for consent.
            currency (None | str | Unset): The currency of `value`: an ISO 4217 code of any case. Default: the project's.
            external_id (None | str | Unset): Names the event for ever within its project: a second one with the same
                changes nothing.
            group_id (None | str | Unset): The group that the event belongs to; a company, if no `group_type` is given.
            group_type (None | str | Unset): The type of that group. Default: `company`.
            hostname (None | str | Unset): The host of the page. Default: that of `url`.
            ip (None | str | Unset): The visitor's address, which distinguishes visitors and, with a database, their
                country; it is not stored. Only read from servers: a browser's own is that of its request.
            language (None | str | Unset): The language of the user.
            message (None | str | Unset): The text of the notification.
            metadata (Any | Unset): Any JSON; the fields of an object can be filtered, grouped and summed by.
            non_interaction (bool | None | Unset): `true`: nobody did anything at its time, so it makes no session. Anything
                else is as absent.
            notify (bool | None | Unset): Whether to send a notification about it.
            pc (None | str | Unset): Short for `privacy_categories`, which wins.
            privacy_categories (None | str | Unset): What the user consented to, separated by commas. Given and without
                `analytics`: the event counts, nobody is counted.
            privacy_signals (None | str | Unset): Privacy signals, separated by commas: `gpc`, `dnt`, `gpp:…`.
            ps (None | str | Unset): Short for `privacy_signals`, which wins.
            referrer (None | str | Unset): The address of the page before.
            screen (None | str | Unset): The size or name of the screen.
            timestamp (datetime.datetime | float | None | Unset): When it happened: RFC 3339, or milliseconds since 1970; a
                number below 1e11 is seconds. Default: now. More than 5 minutes ahead: now. Before 1990: refused.
            url (None | str | Unset): The address of the page.
            user_agent (None | str | Unset): The visitor's user agent. Only read from servers: a browser's own is that of
                its request.
            user_id (None | str | Unset): Who, as the sender's own system names the user.
            value (float | None | Unset): Money: above 0 an order, below 0 a refund. Rounded to 6 decimals. A text that
                reads as a number is one.
    """

    name: str
    field_ac_overrides: None | OverridesShape | Unset = UNSET
    field_sent_at: float | None | str | Unset = UNSET
    anonymous_id: None | str | Unset = UNSET
    channel: None | str | Unset = UNSET
    consent_source: None | str | Unset = UNSET
    currency: None | str | Unset = UNSET
    external_id: None | str | Unset = UNSET
    group_id: None | str | Unset = UNSET
    group_type: None | str | Unset = UNSET
    hostname: None | str | Unset = UNSET
    ip: None | str | Unset = UNSET
    language: None | str | Unset = UNSET
    message: None | str | Unset = UNSET
    metadata: Any | Unset = UNSET
    non_interaction: bool | None | Unset = UNSET
    notify: bool | None | Unset = UNSET
    pc: None | str | Unset = UNSET
    privacy_categories: None | str | Unset = UNSET
    privacy_signals: None | str | Unset = UNSET
    ps: None | str | Unset = UNSET
    referrer: None | str | Unset = UNSET
    screen: None | str | Unset = UNSET
    timestamp: datetime.datetime | float | None | Unset = UNSET
    url: None | str | Unset = UNSET
    user_agent: None | str | Unset = UNSET
    user_id: None | str | Unset = UNSET
    value: float | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.overrides_shape import OverridesShape

        name = self.name

        field_ac_overrides: dict[str, Any] | None | Unset
        if isinstance(self.field_ac_overrides, Unset):
            field_ac_overrides = UNSET
        elif isinstance(self.field_ac_overrides, OverridesShape):
            field_ac_overrides = self.field_ac_overrides.to_dict()
        else:
            field_ac_overrides = self.field_ac_overrides

        field_sent_at: float | None | str | Unset
        if isinstance(self.field_sent_at, Unset):
            field_sent_at = UNSET
        else:
            field_sent_at = self.field_sent_at

        anonymous_id: None | str | Unset
        if isinstance(self.anonymous_id, Unset):
            anonymous_id = UNSET
        else:
            anonymous_id = self.anonymous_id

        channel: None | str | Unset
        if isinstance(self.channel, Unset):
            channel = UNSET
        else:
            channel = self.channel

        consent_source: None | str | Unset
        if isinstance(self.consent_source, Unset):
            consent_source = UNSET
        else:
            consent_source = self.consent_source

        currency: None | str | Unset
        if isinstance(self.currency, Unset):
            currency = UNSET
        else:
            currency = self.currency

        external_id: None | str | Unset
        if isinstance(self.external_id, Unset):
            external_id = UNSET
        else:
            external_id = self.external_id

        group_id: None | str | Unset
        if isinstance(self.group_id, Unset):
            group_id = UNSET
        else:
            group_id = self.group_id

        group_type: None | str | Unset
        if isinstance(self.group_type, Unset):
            group_type = UNSET
        else:
            group_type = self.group_type

        hostname: None | str | Unset
        if isinstance(self.hostname, Unset):
            hostname = UNSET
        else:
            hostname = self.hostname

        ip: None | str | Unset
        if isinstance(self.ip, Unset):
            ip = UNSET
        else:
            ip = self.ip

        language: None | str | Unset
        if isinstance(self.language, Unset):
            language = UNSET
        else:
            language = self.language

        message: None | str | Unset
        if isinstance(self.message, Unset):
            message = UNSET
        else:
            message = self.message

        metadata = self.metadata

        non_interaction: bool | None | Unset
        if isinstance(self.non_interaction, Unset):
            non_interaction = UNSET
        else:
            non_interaction = self.non_interaction

        notify: bool | None | Unset
        if isinstance(self.notify, Unset):
            notify = UNSET
        else:
            notify = self.notify

        pc: None | str | Unset
        if isinstance(self.pc, Unset):
            pc = UNSET
        else:
            pc = self.pc

        privacy_categories: None | str | Unset
        if isinstance(self.privacy_categories, Unset):
            privacy_categories = UNSET
        else:
            privacy_categories = self.privacy_categories

        privacy_signals: None | str | Unset
        if isinstance(self.privacy_signals, Unset):
            privacy_signals = UNSET
        else:
            privacy_signals = self.privacy_signals

        ps: None | str | Unset
        if isinstance(self.ps, Unset):
            ps = UNSET
        else:
            ps = self.ps

        referrer: None | str | Unset
        if isinstance(self.referrer, Unset):
            referrer = UNSET
        else:
            referrer = self.referrer

        screen: None | str | Unset
        if isinstance(self.screen, Unset):
            screen = UNSET
        else:
            screen = self.screen

        timestamp: float | None | str | Unset
        if isinstance(self.timestamp, Unset):
            timestamp = UNSET
        elif isinstance(self.timestamp, datetime.datetime):
            timestamp = self.timestamp.isoformat()
        else:
            timestamp = self.timestamp

        url: None | str | Unset
        if isinstance(self.url, Unset):
            url = UNSET
        else:
            url = self.url

        user_agent: None | str | Unset
        if isinstance(self.user_agent, Unset):
            user_agent = UNSET
        else:
            user_agent = self.user_agent

        user_id: None | str | Unset
        if isinstance(self.user_id, Unset):
            user_id = UNSET
        else:
            user_id = self.user_id

        value: float | None | Unset
        if isinstance(self.value, Unset):
            value = UNSET
        else:
            value = self.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
            }
        )
        if field_ac_overrides is not UNSET:
            field_dict["_acOverrides"] = field_ac_overrides
        if field_sent_at is not UNSET:
            field_dict["_sent_at"] = field_sent_at
        if anonymous_id is not UNSET:
            field_dict["anonymous_id"] = anonymous_id
        if channel is not UNSET:
            field_dict["channel"] = channel
        if consent_source is not UNSET:
            field_dict["consent_source"] = consent_source
        if currency is not UNSET:
            field_dict["currency"] = currency
        if external_id is not UNSET:
            field_dict["external_id"] = external_id
        if group_id is not UNSET:
            field_dict["group_id"] = group_id
        if group_type is not UNSET:
            field_dict["group_type"] = group_type
        if hostname is not UNSET:
            field_dict["hostname"] = hostname
        if ip is not UNSET:
            field_dict["ip"] = ip
        if language is not UNSET:
            field_dict["language"] = language
        if message is not UNSET:
            field_dict["message"] = message
        if metadata is not UNSET:
            field_dict["metadata"] = metadata
        if non_interaction is not UNSET:
            field_dict["non_interaction"] = non_interaction
        if notify is not UNSET:
            field_dict["notify"] = notify
        if pc is not UNSET:
            field_dict["pc"] = pc
        if privacy_categories is not UNSET:
            field_dict["privacy_categories"] = privacy_categories
        if privacy_signals is not UNSET:
            field_dict["privacy_signals"] = privacy_signals
        if ps is not UNSET:
            field_dict["ps"] = ps
        if referrer is not UNSET:
            field_dict["referrer"] = referrer
        if screen is not UNSET:
            field_dict["screen"] = screen
        if timestamp is not UNSET:
            field_dict["timestamp"] = timestamp
        if url is not UNSET:
            field_dict["url"] = url
        if user_agent is not UNSET:
            field_dict["user_agent"] = user_agent
        if user_id is not UNSET:
            field_dict["user_id"] = user_id
        if value is not UNSET:
            field_dict["value"] = value

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.overrides_shape import OverridesShape

        d = dict(src_dict)
        name = d.pop("name")

        def _parse_field_ac_overrides(data: object) -> None | OverridesShape | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                field_ac_overrides_type_1 = OverridesShape.from_dict(data)

                return field_ac_overrides_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OverridesShape | Unset, data)

        field_ac_overrides = _parse_field_ac_overrides(d.pop("_acOverrides", UNSET))

        def _parse_field_sent_at(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        field_sent_at = _parse_field_sent_at(d.pop("_sent_at", UNSET))

        def _parse_anonymous_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        anonymous_id = _parse_anonymous_id(d.pop("anonymous_id", UNSET))

        def _parse_channel(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        channel = _parse_channel(d.pop("channel", UNSET))

        def _parse_consent_source(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        consent_source = _parse_consent_source(d.pop("consent_source", UNSET))

        def _parse_currency(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        currency = _parse_currency(d.pop("currency", UNSET))

        def _parse_external_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        external_id = _parse_external_id(d.pop("external_id", UNSET))

        def _parse_group_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        group_id = _parse_group_id(d.pop("group_id", UNSET))

        def _parse_group_type(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        group_type = _parse_group_type(d.pop("group_type", UNSET))

        def _parse_hostname(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        hostname = _parse_hostname(d.pop("hostname", UNSET))

        def _parse_ip(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        ip = _parse_ip(d.pop("ip", UNSET))

        def _parse_language(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        language = _parse_language(d.pop("language", UNSET))

        def _parse_message(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        message = _parse_message(d.pop("message", UNSET))

        metadata = d.pop("metadata", UNSET)

        def _parse_non_interaction(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        non_interaction = _parse_non_interaction(d.pop("non_interaction", UNSET))

        def _parse_notify(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        notify = _parse_notify(d.pop("notify", UNSET))

        def _parse_pc(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        pc = _parse_pc(d.pop("pc", UNSET))

        def _parse_privacy_categories(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        privacy_categories = _parse_privacy_categories(
            d.pop("privacy_categories", UNSET)
        )

        def _parse_privacy_signals(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        privacy_signals = _parse_privacy_signals(d.pop("privacy_signals", UNSET))

        def _parse_ps(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        ps = _parse_ps(d.pop("ps", UNSET))

        def _parse_referrer(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        referrer = _parse_referrer(d.pop("referrer", UNSET))

        def _parse_screen(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        screen = _parse_screen(d.pop("screen", UNSET))

        def _parse_timestamp(data: object) -> datetime.datetime | float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                timestamp_type_0 = datetime.datetime.fromisoformat(data)

                return timestamp_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | float | None | Unset, data)

        timestamp = _parse_timestamp(d.pop("timestamp", UNSET))

        def _parse_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        url = _parse_url(d.pop("url", UNSET))

        def _parse_user_agent(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user_agent = _parse_user_agent(d.pop("user_agent", UNSET))

        def _parse_user_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user_id = _parse_user_id(d.pop("user_id", UNSET))

        def _parse_value(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        value = _parse_value(d.pop("value", UNSET))

        event_shape = cls(
            name=name,
            field_ac_overrides=field_ac_overrides,
            field_sent_at=field_sent_at,
            anonymous_id=anonymous_id,
            channel=channel,
            consent_source=consent_source,
            currency=currency,
            external_id=external_id,
            group_id=group_id,
            group_type=group_type,
            hostname=hostname,
            ip=ip,
            language=language,
            message=message,
            metadata=metadata,
            non_interaction=non_interaction,
            notify=notify,
            pc=pc,
            privacy_categories=privacy_categories,
            privacy_signals=privacy_signals,
            ps=ps,
            referrer=referrer,
            screen=screen,
            timestamp=timestamp,
            url=url,
            user_agent=user_agent,
            user_id=user_id,
            value=value,
        )

        event_shape.additional_properties = d
        return event_shape

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
