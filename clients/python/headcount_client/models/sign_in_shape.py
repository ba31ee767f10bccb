from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SignInShape")


@_attrs_define
class SignInShape:
    """What a browser signs in with. Exactly one of `token`, `code` and `share` is given.

    Example:
        {'token': 'sk_0123456789abcdefghijklmnopqrstuv'}

    Attributes:
        code (None | str | Unset): A code, as `headcount login` and `POST /session/codes` make them. It is used up.
        replace (bool | None | Unset): Whether a browser that is signed in by another token is signed out. Default:
            false.
        share (None | str | Unset): The secret of a share, which is in its URL.
        token (None | str | Unset): An API token.
    """

    code: None | str | Unset = UNSET
    replace: bool | None | Unset = UNSET
    share: None | str | Unset = UNSET
    token: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        code: None | str | Unset
        if isinstance(self.code, Unset):
            code = UNSET
        else:
            code = self.code

        replace: bool | None | Unset
        if isinstance(self.replace, Unset):
            replace = UNSET
        else:
            replace = self.replace

        share: None | str | Unset
        if isinstance(self.share, Unset):
            share = UNSET
        else:
            share = self.share

        token: None | str | Unset
        if isinstance(self.token, Unset):
            token = UNSET
        else:
            token = self.token

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if code is not UNSET:
            field_dict["code"] = code
        if replace is not UNSET:
            field_dict["replace"] = replace
        if share is not UNSET:
            field_dict["share"] = share
        if token is not UNSET:
            field_dict["token"] = token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_code(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        code = _parse_code(d.pop("code", UNSET))

        def _parse_replace(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        replace = _parse_replace(d.pop("replace", UNSET))

        def _parse_share(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        share = _parse_share(d.pop("share", UNSET))

        def _parse_token(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        token = _parse_token(d.pop("token", UNSET))

        sign_in_shape = cls(
            code=code,
            replace=replace,
            share=share,
            token=token,
        )

        return sign_in_shape
