from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.new_privacy_request_shape import NewPrivacyRequestShape
from ...models.privacy_request_answer import PrivacyRequestAnswer
from ...types import Response


def _get_kwargs(
    *,
    body: NewPrivacyRequestShape,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/privacy-requests",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | PrivacyRequestAnswer | None:
    if response.status_code == 201:
        response_201 = PrivacyRequestAnswer.from_dict(response.json())

        return response_201

    if response.status_code == 400:
        response_400 = ErrorBody.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ErrorBody.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = ErrorBody.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = ErrorBody.from_dict(response.json())

        return response_404

    if response.status_code == 409:
        response_409 = ErrorBody.from_dict(response.json())

        return response_409

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
) -> Response[ErrorBody | PrivacyRequestAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: NewPrivacyRequestShape,
) -> Response[ErrorBody | PrivacyRequestAnswer]:
    """Makes a privacy request. An export has every event that was acknowledged before; its artifact can be
    downloaded once the request is `completed`. From the
    answer to an erasure on, no event of the person is recorded, and after one by e-mail none that
    reports the address; the person is gone from all answers and files once the request is `completed`.
    A second erasure of
    the same person completes.

    Args:
        body (NewPrivacyRequestShape): A new privacy request: its type, and whom it is about.
            Example: {'type': 'erasure', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | PrivacyRequestAnswer]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: NewPrivacyRequestShape,
) -> ErrorBody | PrivacyRequestAnswer | None:
    """Makes a privacy request. An export has every event that was acknowledged before; its artifact can be
    downloaded once the request is `completed`. From the
    answer to an erasure on, no event of the person is recorded, and after one by e-mail none that
    reports the address; the person is gone from all answers and files once the request is `completed`.
    A second erasure of
    the same person completes.

    Args:
        body (NewPrivacyRequestShape): A new privacy request: its type, and whom it is about.
            Example: {'type': 'erasure', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | PrivacyRequestAnswer
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: NewPrivacyRequestShape,
) -> Response[ErrorBody | PrivacyRequestAnswer]:
    """Makes a privacy request. An export has every event that was acknowledged before; its artifact can be
    downloaded once the request is `completed`. From the
    answer to an erasure on, no event of the person is recorded, and after one by e-mail none that
    reports the address; the person is gone from all answers and files once the request is `completed`.
    A second erasure of
    the same person completes.

    Args:
        body (NewPrivacyRequestShape): A new privacy request: its type, and whom it is about.
            Example: {'type': 'erasure', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | PrivacyRequestAnswer]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: NewPrivacyRequestShape,
) -> ErrorBody | PrivacyRequestAnswer | None:
    """Makes a privacy request. An export has every event that was acknowledged before; its artifact can be
    downloaded once the request is `completed`. From the
    answer to an erasure on, no event of the person is recorded, and after one by e-mail none that
    reports the address; the person is gone from all answers and files once the request is `completed`.
    A second erasure of
    the same person completes.

    Args:
        body (NewPrivacyRequestShape): A new privacy request: its type, and whom it is about.
            Example: {'type': 'erasure', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | PrivacyRequestAnswer
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
