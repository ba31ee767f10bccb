from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.verify_answer import VerifyAnswer
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    quick: bool | Unset = False,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["quick"] = quick

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/admin/verify",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | VerifyAnswer | None:
    if response.status_code == 200:
        response_200 = VerifyAnswer.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = ErrorBody.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ErrorBody.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = ErrorBody.from_dict(response.json())

        return response_403

    if response.status_code == 409:
        response_409 = ErrorBody.from_dict(response.json())

        return response_409

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
) -> Response[ErrorBody | VerifyAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    quick: bool | Unset = False,
) -> Response[ErrorBody | VerifyAnswer]:
    """Recomputes the figures of every project from its recorded events, compares them, and checks all
    files.

     It takes as long as replaying all events, at the lowest priority. In a cluster, each node does so
    with the partitions that it has. The answer begins with a space every few seconds until it is there.
    One
    that fails later than at once is an error object with the status 200. It ends when the client closes
    the connection.

    Args:
        quick (bool | Unset):  Default: False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | VerifyAnswer]
    """

    kwargs = _get_kwargs(
        quick=quick,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    quick: bool | Unset = False,
) -> ErrorBody | VerifyAnswer | None:
    """Recomputes the figures of every project from its recorded events, compares them, and checks all
    files.

     It takes as long as replaying all events, at the lowest priority. In a cluster, each node does so
    with the partitions that it has. The answer begins with a space every few seconds until it is there.
    One
    that fails later than at once is an error object with the status 200. It ends when the client closes
    the connection.

    Args:
        quick (bool | Unset):  Default: False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | VerifyAnswer
    """

    return sync_detailed(
        client=client,
        quick=quick,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    quick: bool | Unset = False,
) -> Response[ErrorBody | VerifyAnswer]:
    """Recomputes the figures of every project from its recorded events, compares them, and checks all
    files.

     It takes as long as replaying all events, at the lowest priority. In a cluster, each node does so
    with the partitions that it has. The answer begins with a space every few seconds until it is there.
    One
    that fails later than at once is an error object with the status 200. It ends when the client closes
    the connection.

    Args:
        quick (bool | Unset):  Default: False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | VerifyAnswer]
    """

    kwargs = _get_kwargs(
        quick=quick,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    quick: bool | Unset = False,
) -> ErrorBody | VerifyAnswer | None:
    """Recomputes the figures of every project from its recorded events, compares them, and checks all
    files.

     It takes as long as replaying all events, at the lowest priority. In a cluster, each node does so
    with the partitions that it has. The answer begins with a space every few seconds until it is there.
    One
    that fails later than at once is an error object with the status 200. It ends when the client closes
    the connection.

    Args:
        quick (bool | Unset):  Default: False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | VerifyAnswer
    """

    return (
        await asyncio_detailed(
            client=client,
            quick=quick,
        )
    ).parsed
