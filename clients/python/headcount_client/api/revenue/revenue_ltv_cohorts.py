from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.cohorts_answer import CohortsAnswer
from ...models.error_body import ErrorBody
from ...models.revenue_ltv_cohorts_level import RevenueLtvCohortsLevel
from ...types import UNSET, Response, Unset


def _get_kwargs(
    project_id: str,
    *,
    level: RevenueLtvCohortsLevel | Unset = RevenueLtvCohortsLevel.ACCOUNT,
    limit: int | Unset = 24,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_level: str | Unset = UNSET
    if not isinstance(level, Unset):
        json_level = level.value

    params["level"] = json_level

    params["limit"] = limit

    params["start_date"] = start_date

    params["end_date"] = end_date

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/projects/{project_id}/revenue/ltv-cohorts".format(
            project_id=quote(str(project_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | CohortsAnswer | ErrorBody | None:
    if response.status_code == 200:
        response_200 = CohortsAnswer.from_dict(response.json())

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
) -> Response[Any | CohortsAnswer | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    level: RevenueLtvCohortsLevel | Unset = RevenueLtvCohortsLevel.ACCOUNT,
    limit: int | Unset = 24,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
) -> Response[Any | CohortsAnswer | ErrorBody]:
    """Lifetime value of those who were first seen in each month.

    Args:
        project_id (str):
        level (RevenueLtvCohortsLevel | Unset):  Default: RevenueLtvCohortsLevel.ACCOUNT.
        limit (int | Unset):  Default: 24.
        start_date (str | Unset):
        end_date (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CohortsAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        level=level,
        limit=limit,
        start_date=start_date,
        end_date=end_date,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    level: RevenueLtvCohortsLevel | Unset = RevenueLtvCohortsLevel.ACCOUNT,
    limit: int | Unset = 24,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
) -> Any | CohortsAnswer | ErrorBody | None:
    """Lifetime value of those who were first seen in each month.

    Args:
        project_id (str):
        level (RevenueLtvCohortsLevel | Unset):  Default: RevenueLtvCohortsLevel.ACCOUNT.
        limit (int | Unset):  Default: 24.
        start_date (str | Unset):
        end_date (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CohortsAnswer | ErrorBody
    """

    return sync_detailed(
        project_id=project_id,
        client=client,
        level=level,
        limit=limit,
        start_date=start_date,
        end_date=end_date,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    level: RevenueLtvCohortsLevel | Unset = RevenueLtvCohortsLevel.ACCOUNT,
    limit: int | Unset = 24,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
) -> Response[Any | CohortsAnswer | ErrorBody]:
    """Lifetime value of those who were first seen in each month.

    Args:
        project_id (str):
        level (RevenueLtvCohortsLevel | Unset):  Default: RevenueLtvCohortsLevel.ACCOUNT.
        limit (int | Unset):  Default: 24.
        start_date (str | Unset):
        end_date (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CohortsAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        level=level,
        limit=limit,
        start_date=start_date,
        end_date=end_date,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    level: RevenueLtvCohortsLevel | Unset = RevenueLtvCohortsLevel.ACCOUNT,
    limit: int | Unset = 24,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
) -> Any | CohortsAnswer | ErrorBody | None:
    """Lifetime value of those who were first seen in each month.

    Args:
        project_id (str):
        level (RevenueLtvCohortsLevel | Unset):  Default: RevenueLtvCohortsLevel.ACCOUNT.
        limit (int | Unset):  Default: 24.
        start_date (str | Unset):
        end_date (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CohortsAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            level=level,
            limit=limit,
            start_date=start_date,
            end_date=end_date,
        )
    ).parsed
