from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.error_type import ErrorType

T = TypeVar("T", bound="ErrorDetail")


@_attrs_define
class ErrorDetail:
    """The error.

    Attributes:
        code (str): What went wrong, for programs.

            | code | type | status | cause |
            |---|---|---|---|
            | `invalid_json` | `invalid_request` | 400 | The body is not JSON, or not of the expected shape. |
            | `before_retention` | `invalid_request` | 400 | The question needs events of days that the project no longer
            keeps. |
            | `invalid_parameter` | `invalid_request` | 400 | A parameter or field has a value that is not allowed. |
            | `missing_parameter` | `invalid_request` | 400 | A required parameter or field is absent. |
            | `unknown_parameter` | `invalid_request` | 400 | The operation has no such parameter or field. |
            | `timezone_mismatch` | `invalid_request` | 400 | The day of an imported row is that of another timezone; only
            in the answer to a batch. |
            | `currency_mismatch` | `invalid_request` | 400 | The money of an imported row was converted to other
            currencies; only in the answer to a batch. |
            | `unsupported_combination` | `invalid_request` | 400 | A field of the session can't be combined with a sum, or
            with this operation. |
            | `duplicate_credentials` | `invalid_request` | 400 | The request has several `Authorization` headers or cookies
            of the page, or both. |
            | `malformed_request` | `invalid_request` | 400 | The request can't be read as HTTP. |
            | `body_timeout` | `invalid_request` | 400 | The body did not arrive in time. |
            | `incomplete_body` | `invalid_request` | 400 | The body ended early. |
            | `invalid_encoding` | `invalid_request` | 400 | The body does not match its content encoding. |
            | `invalid_credential` | `authentication` | 401 | The token, public key, session or share is missing, unknown,
            expired or revoked, or the cookie doesn't count: the page itself did not send the request. |
            | `insufficient_role` | `permission` | 403 | The operation needs another role. |
            | `insufficient_scope` | `permission` | 403 | The token lacks the scope of the operation. |
            | `project_forbidden` | `permission` | 403 | The token is for one project, and the operation is not about it. |
            | `share_forbidden` | `permission` | 403 | A share shows figures of its project, and money only if it was made
            so: no people, no companies, no settings. |
            | `cross_site` | `permission` | 403 | A page of another site sent the request. |
            | `operator_required` | `permission` | 403 | The operation needs the operator token, which only the data
            directory has. |
            | `origin_forbidden` | `permission` | 403 | The project accepts no events from pages of this origin. |
            | `capability_required` | `permission` | 403 | The operation needs a capability that the organization doesn't
            have. |
            | `actions_exhausted` | `permission` | 403 | The organization has too few Actions left. |
            | `not_found` | `not_found` | 404 | There is no such thing, or it is another organization's. |
            | `method_not_allowed` | `invalid_request` | 405 | The path does not support the method; `Allow` lists those
            that it supports. |
            | `timezone_fixed` | `conflict` | 409 | The timezone can't change after the first event. |
            | `currency_fixed` | `conflict` | 409 | The currency can't change after the first event. |
            | `last_public_key` | `conflict` | 409 | The last public key of a project can't be removed. |
            | `last_owner` | `conflict` | 409 | No valid token of role owner would be left. |
            | `signed_in` | `conflict` | 409 | The browser is signed in by another token; the message has the names of both
            organizations. |
            | `email_taken` | `conflict` | 409 | Another member has the e-mail address. |
            | `website_taken` | `conflict` | 409 | Another company profile has the website. |
            | `website_mismatch` | `conflict` | 409 | The company profile has another website, or is being built from
            another one. |
            | `limit_reached` | `conflict` | 409 | There are as many of these as there may be. |
            | `too_many_identities` | `conflict` | 409 | Too many identities have the e-mail address to be erased together,
            or the organization has erased too many. |
            | `export_not_ready` | `conflict` | 409 | The export is not completed. |
            | `export_failed` | `conflict` | 409 | The export failed; its request says why. |
            | `backup_running` | `conflict` | 409 | Another backup is being made. |
            | `verify_running` | `conflict` | 409 | Another verification is under way. |
            | `already_initialized` | `conflict` | 409 | The first organization exists. |
            | `cursor_expired` | `gone` | 410 | The cursor is of data that a restore replaced, of days that are not kept any
            more, or of an explanation whose time is over; begin with the first page. |
            | `artifact_expired` | `gone` | 410 | What the export made was kept until `expires_at`, and is gone for ever. |
            | `artifact_erased` | `gone` | 410 | What the export made had somebody who was erased, or a project that was
            deleted. |
            | `range_not_satisfiable` | `invalid_request` | 416 | The range begins behind the end; `Content-Range` has the
            length. |
            | `body_too_large` | `invalid_request` | 413 | The body is over its limit, as sent or decompressed. |
            | `event_too_large` | `invalid_request` | 413 | An event of a batch is over its limit; only in the answer to a
            batch. |
            | `unsupported_media_type` | `invalid_request` | 415 | The body has a type or an encoding that is not accepted.
            |
            | `quota_exceeded` | `rate_limited` | 429 | The project has reached a quota. |
            | `rate_limited` | `rate_limited` | 429 | The rate limit of the public key, of its project, of the token, of the
            share, of sign-ins, or of the changes of an organization is used up. |
            | `outcome_unknown` | `internal` | 500 | The event may or may not have been recorded; resending it with the same
            `external_id` is safe. |
            | `archive_damaged` | `internal` | 500 | A file of the archive that the answer needs is damaged; the message
            names it. |
            | `internal` | `internal` | 500 | A fault of the server. |
            | `unsupported_in_cluster` | `invalid_request` | 501 | The server is a node of a cluster, where the operation
            does not work yet. |
            | `question_timeout` | `overloaded` | 503 | The answer took longer than the setting `question_timeout`. |
            | `overloaded` | `overloaded` | 503 | There is no capacity for it now. Nothing was recorded or changed. |
        message (str): The error and the allowed values, for people.
        param (None | str): The field or parameter that is wrong, where it is one.
        request_id (str): The id of the request, as in the header `x-request-id`.
        type_ (ErrorType): What kind of error it is, for programs.
    """

    code: str
    message: str
    param: None | str
    request_id: str
    type_: ErrorType

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        message = self.message

        param: None | str
        param = self.param

        request_id = self.request_id

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "message": message,
                "param": param,
                "request_id": request_id,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        code = d.pop("code")

        message = d.pop("message")

        def _parse_param(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        param = _parse_param(d.pop("param"))

        request_id = d.pop("request_id")

        type_ = ErrorType(d.pop("type"))

        error_detail = cls(
            code=code,
            message=message,
            param=param,
            request_id=request_id,
            type_=type_,
        )

        return error_detail
