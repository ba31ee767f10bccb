from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.completed_top_users_answer import CompletedTopUsersAnswer
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
    company_id: str,
    *,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["range_days"] = range_days

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/companies/{company_id}/top-users".format(
            company_id=quote(str(company_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | CompletedTopUsersAnswer | ErrorBody | None:
    if response.status_code == 200:
        response_200 = CompletedTopUsersAnswer.from_dict(response.json())

        return response_200

    if response.status_code == 304:
        response_304 = cast(Any, None)
        return response_304

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
) -> Response[Any | CompletedTopUsersAnswer | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    company_id: str,
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Response[Any | CompletedTopUsersAnswer | ErrorBody]:
    """A company's identified users (with a `user_id` or an e-mail address), those with the most events in
    the last days first.

    Args:
        company_id (str):
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedTopUsersAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        company_id=company_id,
        range_days=range_days,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    company_id: str,
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Any | CompletedTopUsersAnswer | ErrorBody | None:
    """A company's identified users (with a `user_id` or an e-mail address), those with the most events in
    the last days first.

    Args:
        company_id (str):
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedTopUsersAnswer | ErrorBody
    """

    return sync_detailed(
        company_id=company_id,
        client=client,
        range_days=range_days,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    company_id: str,
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Response[Any | CompletedTopUsersAnswer | ErrorBody]:
    """A company's identified users (with a `user_id` or an e-mail address), those with the most events in
    the last days first.

    Args:
        company_id (str):
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedTopUsersAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        company_id=company_id,
        range_days=range_days,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    company_id: str,
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Any | CompletedTopUsersAnswer | ErrorBody | None:
    """A company's identified users (with a `user_id` or an e-mail address), those with the most events in
    the last days first.

    Args:
        company_id (str):
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedTopUsersAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            company_id=company_id,
            client=client,
            range_days=range_days,
            limit=limit,
        )
    ).parsed
