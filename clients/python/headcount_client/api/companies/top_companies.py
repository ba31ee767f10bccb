from http import HTTPStatus
from typing import Any, cast

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.completed_top_companies_answer import CompletedTopCompaniesAnswer
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
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
        "url": "/companies/top",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | CompletedTopCompaniesAnswer | ErrorBody | None:
    if response.status_code == 200:
        response_200 = CompletedTopCompaniesAnswer.from_dict(response.json())

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
) -> Response[Any | CompletedTopCompaniesAnswer | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Response[Any | CompletedTopCompaniesAnswer | ErrorBody]:
    """The companies with the most events in the last days, over all projects.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedTopCompaniesAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        range_days=range_days,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Any | CompletedTopCompaniesAnswer | ErrorBody | None:
    """The companies with the most events in the last days, over all projects.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedTopCompaniesAnswer | ErrorBody
    """

    return sync_detailed(
        client=client,
        range_days=range_days,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Response[Any | CompletedTopCompaniesAnswer | ErrorBody]:
    """The companies with the most events in the last days, over all projects.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedTopCompaniesAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        range_days=range_days,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
) -> Any | CompletedTopCompaniesAnswer | ErrorBody | None:
    """The companies with the most events in the last days, over all projects.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedTopCompaniesAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            range_days=range_days,
            limit=limit,
        )
    ).parsed
