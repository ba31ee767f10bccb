from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="NewShareAnswer")


@_attrs_define
class NewShareAnswer:
    """A share that was just made.

    Attributes:
        created_at (datetime.datetime):
        embed_origins (list[str]): The web origins whose pages may show it in a frame.
        expires_at (datetime.datetime | None):
        name (str): Its name.
        project_id (str): The project that it shows.
        revenue (bool): Whether it shows money.
        share_id (str): Its id, which is not secret.
        url (str): The link. It has the secret, is shown here once, and is kept nowhere. What is after `#` is in no log
            of a server.
    """

    created_at: datetime.datetime
    embed_origins: list[str]
    expires_at: datetime.datetime | None
    name: str
    project_id: str
    revenue: bool
    share_id: str
    url: str

    def to_dict(self) -> dict[str, Any]:
        created_at = self.created_at.isoformat()

        embed_origins = self.embed_origins

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        name = self.name

        project_id = self.project_id

        revenue = self.revenue

        share_id = self.share_id

        url = self.url

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "created_at": created_at,
                "embed_origins": embed_origins,
                "expires_at": expires_at,
                "name": name,
                "project_id": project_id,
                "revenue": revenue,
                "share_id": share_id,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        embed_origins = cast(list[str], d.pop("embed_origins"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        name = d.pop("name")

        project_id = d.pop("project_id")

        revenue = d.pop("revenue")

        share_id = d.pop("share_id")

        url = d.pop("url")

        new_share_answer = cls(
            created_at=created_at,
            embed_origins=embed_origins,
            expires_at=expires_at,
            name=name,
            project_id=project_id,
            revenue=revenue,
            share_id=share_id,
            url=url,
        )

        return new_share_answer
