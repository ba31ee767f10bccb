from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.event_shape import EventShape
from ...models.track_answer import TrackAnswer
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: EventShape,
    pk: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["pk"] = pk

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/track",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | TrackAnswer | None:
    if response.status_code == 202:
        response_202 = TrackAnswer.from_dict(response.json())

        return response_202

    if response.status_code == 400:
        response_400 = ErrorBody.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ErrorBody.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = ErrorBody.from_dict(response.json())

        return response_403

    if response.status_code == 413:
        response_413 = ErrorBody.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = ErrorBody.from_dict(response.json())

        return response_415

    if response.status_code == 429:
        response_429 = ErrorBody.from_dict(response.json())

        return response_429

    if response.status_code == 500:
        response_500 = ErrorBody.from_dict(response.json())

        return response_500

    if response.status_code == 503:
        response_503 = ErrorBody.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorBody | TrackAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: EventShape,
    pk: str | Unset = UNSET,
) -> Response[ErrorBody | TrackAnswer]:
    """Records one event (the same as `POST /i`).

    Args:
        pk (str | Unset):
        body (EventShape): Something that happened. Fields that are not listed are ignored; null
            and empty text are as if absent, but for `privacy_categories` and `pc`. An event is
            refused without a usable `name`, for a `timestamp` that is no time, and for an
            `external_id` that is too long; whatever else is wrong costs a detail, which `warnings` in
            the answer names.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TrackAnswer]
    """

    kwargs = _get_kwargs(
        body=body,
        pk=pk,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: EventShape,
    pk: str | Unset = UNSET,
) -> ErrorBody | TrackAnswer | None:
    """Records one event (the same as `POST /i`).

    Args:
        pk (str | Unset):
        body (EventShape): Something that happened. Fields that are not listed are ignored; null
            and empty text are as if absent, but for `privacy_categories` and `pc`. An event is
            refused without a usable `name`, for a `timestamp` that is no time, and for an
            `external_id` that is too long; whatever else is wrong costs a detail, which `warnings` in
            the answer names.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TrackAnswer
    """

    return sync_detailed(
        client=client,
        body=body,
        pk=pk,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: EventShape,
    pk: str | Unset = UNSET,
) -> Response[ErrorBody | TrackAnswer]:
    """Records one event (the same as `POST /i`).

    Args:
        pk (str | Unset):
        body (EventShape): Something that happened. Fields that are not listed are ignored; null
            and empty text are as if absent, but for `privacy_categories` and `pc`. An event is
            refused without a usable `name`, for a `timestamp` that is no time, and for an
            `external_id` that is too long; whatever else is wrong costs a detail, which `warnings` in
            the answer names.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TrackAnswer]
    """

    kwargs = _get_kwargs(
        body=body,
        pk=pk,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: EventShape,
    pk: str | Unset = UNSET,
) -> ErrorBody | TrackAnswer | None:
    """Records one event (the same as `POST /i`).

    Args:
        pk (str | Unset):
        body (EventShape): Something that happened. Fields that are not listed are ignored; null
            and empty text are as if absent, but for `privacy_categories` and `pc`. An event is
            refused without a usable `name`, for a `timestamp` that is no time, and for an
            `external_id` that is too long; whatever else is wrong costs a detail, which `warnings` in
            the answer names.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TrackAnswer
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            pk=pk,
        )
    ).parsed
