from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="PrivacyArtifactShapeSessionsItem")


@_attrs_define
class PrivacyArtifactShapeSessionsItem:
    """A session.

    Attributes:
        acquisition_channel (str): The channel group.
        campaign (str): By which campaign.
        duration_sec (float): The time between them in seconds.
        ended_at (datetime.datetime): Its last event.
        entry_url (None | str): Its first page.
        events (int): How many events.
        exit_url (None | str): Its last page.
        identity_id (str): Whose it is.
        medium (str): By which medium.
        pageviews (int): How many of them are pageviews.
        project_id (str): Its project.
        source (str): Where it came from.
        started_at (datetime.datetime): Its first event.
    """

    acquisition_channel: str
    campaign: str
    duration_sec: float
    ended_at: datetime.datetime
    entry_url: None | str
    events: int
    exit_url: None | str
    identity_id: str
    medium: str
    pageviews: int
    project_id: str
    source: str
    started_at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        acquisition_channel = self.acquisition_channel

        campaign = self.campaign

        duration_sec = self.duration_sec

        ended_at = self.ended_at.isoformat()

        entry_url: None | str
        entry_url = self.entry_url

        events = self.events

        exit_url: None | str
        exit_url = self.exit_url

        identity_id = self.identity_id

        medium = self.medium

        pageviews = self.pageviews

        project_id = self.project_id

        source = self.source

        started_at = self.started_at.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "acquisition_channel": acquisition_channel,
                "campaign": campaign,
                "duration_sec": duration_sec,
                "ended_at": ended_at,
                "entry_url": entry_url,
                "events": events,
                "exit_url": exit_url,
                "identity_id": identity_id,
                "medium": medium,
                "pageviews": pageviews,
                "project_id": project_id,
                "source": source,
                "started_at": started_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        acquisition_channel = d.pop("acquisition_channel")

        campaign = d.pop("campaign")

        duration_sec = d.pop("duration_sec")

        ended_at = datetime.datetime.fromisoformat(d.pop("ended_at"))

        def _parse_entry_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        entry_url = _parse_entry_url(d.pop("entry_url"))

        events = d.pop("events")

        def _parse_exit_url(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        exit_url = _parse_exit_url(d.pop("exit_url"))

        identity_id = d.pop("identity_id")

        medium = d.pop("medium")

        pageviews = d.pop("pageviews")

        project_id = d.pop("project_id")

        source = d.pop("source")

        started_at = datetime.datetime.fromisoformat(d.pop("started_at"))

        privacy_artifact_shape_sessions_item = cls(
            acquisition_channel=acquisition_channel,
            campaign=campaign,
            duration_sec=duration_sec,
            ended_at=ended_at,
            entry_url=entry_url,
            events=events,
            exit_url=exit_url,
            identity_id=identity_id,
            medium=medium,
            pageviews=pageviews,
            project_id=project_id,
            source=source,
            started_at=started_at,
        )

        return privacy_artifact_shape_sessions_item
