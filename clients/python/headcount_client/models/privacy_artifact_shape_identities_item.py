from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.privacy_artifact_shape_identities_item_anonymous_ids_item import (
        PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem,
    )
    from ..models.privacy_artifact_shape_identities_item_traits import (
        PrivacyArtifactShapeIdentitiesItemTraits,
    )


T = TypeVar("T", bound="PrivacyArtifactShapeIdentitiesItem")


@_attrs_define
class PrivacyArtifactShapeIdentitiesItem:
    """Who a person is.

    Attributes:
        anonymous_ids (list[PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem]): The anonymous ids.
        emails (list[str]): The e-mail addresses.
        first_seen (datetime.datetime | None): The first event.
        identity_id (str): The identity, `id_…`.
        last_seen (datetime.datetime | None): The last event.
        resolved_identifier (None | str): What names the identity in lists.
        traits (PrivacyArtifactShapeIdentitiesItemTraits): The traits, each with its latest value.
        user_id (None | str): The user's id; null of a visitor without one.
    """

    anonymous_ids: list[PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem]
    emails: list[str]
    first_seen: datetime.datetime | None
    identity_id: str
    last_seen: datetime.datetime | None
    resolved_identifier: None | str
    traits: PrivacyArtifactShapeIdentitiesItemTraits
    user_id: None | str

    def to_dict(self) -> dict[str, Any]:
        anonymous_ids = []
        for anonymous_ids_item_data in self.anonymous_ids:
            anonymous_ids_item = anonymous_ids_item_data.to_dict()
            anonymous_ids.append(anonymous_ids_item)

        emails = self.emails

        first_seen: None | str
        if isinstance(self.first_seen, datetime.datetime):
            first_seen = self.first_seen.isoformat()
        else:
            first_seen = self.first_seen

        identity_id = self.identity_id

        last_seen: None | str
        if isinstance(self.last_seen, datetime.datetime):
            last_seen = self.last_seen.isoformat()
        else:
            last_seen = self.last_seen

        resolved_identifier: None | str
        resolved_identifier = self.resolved_identifier

        traits = self.traits.to_dict()

        user_id: None | str
        user_id = self.user_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "anonymous_ids": anonymous_ids,
                "emails": emails,
                "first_seen": first_seen,
                "identity_id": identity_id,
                "last_seen": last_seen,
                "resolved_identifier": resolved_identifier,
                "traits": traits,
                "user_id": user_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.privacy_artifact_shape_identities_item_anonymous_ids_item import (
            PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem,
        )
        from ..models.privacy_artifact_shape_identities_item_traits import (
            PrivacyArtifactShapeIdentitiesItemTraits,
        )

        d = dict(src_dict)
        anonymous_ids = []
        _anonymous_ids = d.pop("anonymous_ids")
        for anonymous_ids_item_data in _anonymous_ids:
            anonymous_ids_item = (
                PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem.from_dict(
                    anonymous_ids_item_data
                )
            )

            anonymous_ids.append(anonymous_ids_item)

        emails = cast(list[str], d.pop("emails"))

        def _parse_first_seen(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                first_seen_type_1 = datetime.datetime.fromisoformat(data)

                return first_seen_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        first_seen = _parse_first_seen(d.pop("first_seen"))

        identity_id = d.pop("identity_id")

        def _parse_last_seen(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_seen_type_1 = datetime.datetime.fromisoformat(data)

                return last_seen_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_seen = _parse_last_seen(d.pop("last_seen"))

        def _parse_resolved_identifier(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        resolved_identifier = _parse_resolved_identifier(d.pop("resolved_identifier"))

        traits = PrivacyArtifactShapeIdentitiesItemTraits.from_dict(d.pop("traits"))

        def _parse_user_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        user_id = _parse_user_id(d.pop("user_id"))

        privacy_artifact_shape_identities_item = cls(
            anonymous_ids=anonymous_ids,
            emails=emails,
            first_seen=first_seen,
            identity_id=identity_id,
            last_seen=last_seen,
            resolved_identifier=resolved_identifier,
            traits=traits,
            user_id=user_id,
        )

        return privacy_artifact_shape_identities_item
