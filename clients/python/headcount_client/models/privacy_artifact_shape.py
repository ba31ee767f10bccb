from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.privacy_artifact_shape_companies_item import (
        PrivacyArtifactShapeCompaniesItem,
    )
    from ..models.privacy_artifact_shape_events_item import (
        PrivacyArtifactShapeEventsItem,
    )
    from ..models.privacy_artifact_shape_groups_item import (
        PrivacyArtifactShapeGroupsItem,
    )
    from ..models.privacy_artifact_shape_identities_item import (
        PrivacyArtifactShapeIdentitiesItem,
    )
    from ..models.privacy_artifact_shape_identity_type_1 import (
        PrivacyArtifactShapeIdentityType1,
    )
    from ..models.privacy_artifact_shape_orders_item import (
        PrivacyArtifactShapeOrdersItem,
    )
    from ..models.privacy_artifact_shape_sessions_item import (
        PrivacyArtifactShapeSessionsItem,
    )
    from ..models.privacy_subject_answer import PrivacySubjectAnswer


T = TypeVar("T", bound="PrivacyArtifactShape")


@_attrs_define
class PrivacyArtifactShape:
    """What is recorded of a person, over all projects. Keys are always there, and null if there is no value.

    Attributes:
        companies (list[PrivacyArtifactShapeCompaniesItem]): The companies, that with most events first.
        events (list[PrivacyArtifactShapeEventsItem]): The events, by time.
        format_ (str): `headcount.export.v1`.
        generated_at (datetime.datetime): When the export was made.
        groups (list[PrivacyArtifactShapeGroupsItem]): The groups that are no companies, that with most events first.
        identities (list[PrivacyArtifactShapeIdentitiesItem]): All identities.
        identity (None | PrivacyArtifactShapeIdentityType1): The identity that was seen last.
        orders (list[PrivacyArtifactShapeOrdersItem]): The orders and refunds, by time.
        sessions (list[PrivacyArtifactShapeSessionsItem]): The sessions, by their begin.
        subject (PrivacySubjectAnswer): Whom a request is about: one of `email`, `user_id` and `anonymous_id`. The value
            is `[erased]` once the person is erased.
    """

    companies: list[PrivacyArtifactShapeCompaniesItem]
    events: list[PrivacyArtifactShapeEventsItem]
    format_: str
    generated_at: datetime.datetime
    groups: list[PrivacyArtifactShapeGroupsItem]
    identities: list[PrivacyArtifactShapeIdentitiesItem]
    identity: None | PrivacyArtifactShapeIdentityType1
    orders: list[PrivacyArtifactShapeOrdersItem]
    sessions: list[PrivacyArtifactShapeSessionsItem]
    subject: PrivacySubjectAnswer

    def to_dict(self) -> dict[str, Any]:
        from ..models.privacy_artifact_shape_identity_type_1 import (
            PrivacyArtifactShapeIdentityType1,
        )

        companies = []
        for companies_item_data in self.companies:
            companies_item = companies_item_data.to_dict()
            companies.append(companies_item)

        events = []
        for events_item_data in self.events:
            events_item = events_item_data.to_dict()
            events.append(events_item)

        format_ = self.format_

        generated_at = self.generated_at.isoformat()

        groups = []
        for groups_item_data in self.groups:
            groups_item = groups_item_data.to_dict()
            groups.append(groups_item)

        identities = []
        for identities_item_data in self.identities:
            identities_item = identities_item_data.to_dict()
            identities.append(identities_item)

        identity: dict[str, Any] | None
        if isinstance(self.identity, PrivacyArtifactShapeIdentityType1):
            identity = self.identity.to_dict()
        else:
            identity = self.identity

        orders = []
        for orders_item_data in self.orders:
            orders_item = orders_item_data.to_dict()
            orders.append(orders_item)

        sessions = []
        for sessions_item_data in self.sessions:
            sessions_item = sessions_item_data.to_dict()
            sessions.append(sessions_item)

        subject = self.subject.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "companies": companies,
                "events": events,
                "format": format_,
                "generated_at": generated_at,
                "groups": groups,
                "identities": identities,
                "identity": identity,
                "orders": orders,
                "sessions": sessions,
                "subject": subject,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.privacy_artifact_shape_companies_item import (
            PrivacyArtifactShapeCompaniesItem,
        )
        from ..models.privacy_artifact_shape_events_item import (
            PrivacyArtifactShapeEventsItem,
        )
        from ..models.privacy_artifact_shape_groups_item import (
            PrivacyArtifactShapeGroupsItem,
        )
        from ..models.privacy_artifact_shape_identities_item import (
            PrivacyArtifactShapeIdentitiesItem,
        )
        from ..models.privacy_artifact_shape_identity_type_1 import (
            PrivacyArtifactShapeIdentityType1,
        )
        from ..models.privacy_artifact_shape_orders_item import (
            PrivacyArtifactShapeOrdersItem,
        )
        from ..models.privacy_artifact_shape_sessions_item import (
            PrivacyArtifactShapeSessionsItem,
        )
        from ..models.privacy_subject_answer import PrivacySubjectAnswer

        d = dict(src_dict)
        companies = []
        _companies = d.pop("companies")
        for companies_item_data in _companies:
            companies_item = PrivacyArtifactShapeCompaniesItem.from_dict(
                companies_item_data
            )

            companies.append(companies_item)

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = PrivacyArtifactShapeEventsItem.from_dict(events_item_data)

            events.append(events_item)

        format_ = d.pop("format")

        generated_at = datetime.datetime.fromisoformat(d.pop("generated_at"))

        groups = []
        _groups = d.pop("groups")
        for groups_item_data in _groups:
            groups_item = PrivacyArtifactShapeGroupsItem.from_dict(groups_item_data)

            groups.append(groups_item)

        identities = []
        _identities = d.pop("identities")
        for identities_item_data in _identities:
            identities_item = PrivacyArtifactShapeIdentitiesItem.from_dict(
                identities_item_data
            )

            identities.append(identities_item)

        def _parse_identity(data: object) -> None | PrivacyArtifactShapeIdentityType1:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                identity_type_1 = PrivacyArtifactShapeIdentityType1.from_dict(data)

                return identity_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PrivacyArtifactShapeIdentityType1, data)

        identity = _parse_identity(d.pop("identity"))

        orders = []
        _orders = d.pop("orders")
        for orders_item_data in _orders:
            orders_item = PrivacyArtifactShapeOrdersItem.from_dict(orders_item_data)

            orders.append(orders_item)

        sessions = []
        _sessions = d.pop("sessions")
        for sessions_item_data in _sessions:
            sessions_item = PrivacyArtifactShapeSessionsItem.from_dict(
                sessions_item_data
            )

            sessions.append(sessions_item)

        subject = PrivacySubjectAnswer.from_dict(d.pop("subject"))

        privacy_artifact_shape = cls(
            companies=companies,
            events=events,
            format_=format_,
            generated_at=generated_at,
            groups=groups,
            identities=identities,
            identity=identity,
            orders=orders,
            sessions=sessions,
            subject=subject,
        )

        return privacy_artifact_shape
