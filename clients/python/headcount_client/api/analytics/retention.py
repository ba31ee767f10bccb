from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.retention_answer import RetentionAnswer
from ...models.retention_interval import RetentionInterval
from ...types import UNSET, Response, Unset


def _get_kwargs(
    project_id: str,
    *,
    interval: RetentionInterval | Unset = RetentionInterval.WEEK,
    cohorts: int | Unset = 12,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_interval: str | Unset = UNSET
    if not isinstance(interval, Unset):
        json_interval = interval.value

    params["interval"] = json_interval

    params["cohorts"] = cohorts

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/projects/{project_id}/analytics/retention".format(
            project_id=quote(str(project_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ErrorBody | RetentionAnswer | None:
    if response.status_code == 200:
        response_200 = RetentionAnswer.from_dict(response.json())

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
) -> Response[Any | ErrorBody | RetentionAnswer]:
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
    interval: RetentionInterval | Unset = RetentionInterval.WEEK,
    cohorts: int | Unset = 12,
) -> Response[Any | ErrorBody | RetentionAnswer]:
    """Users by the week or month of their first event, and how many of them were active in each later one.

    Args:
        project_id (str):
        interval (RetentionInterval | Unset):  Default: RetentionInterval.WEEK.
        cohorts (int | Unset):  Default: 12.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | RetentionAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        interval=interval,
        cohorts=cohorts,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    interval: RetentionInterval | Unset = RetentionInterval.WEEK,
    cohorts: int | Unset = 12,
) -> Any | ErrorBody | RetentionAnswer | None:
    """Users by the week or month of their first event, and how many of them were active in each later one.

    Args:
        project_id (str):
        interval (RetentionInterval | Unset):  Default: RetentionInterval.WEEK.
        cohorts (int | Unset):  Default: 12.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | RetentionAnswer
    """

    return sync_detailed(
        project_id=project_id,
        client=client,
        interval=interval,
        cohorts=cohorts,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    interval: RetentionInterval | Unset = RetentionInterval.WEEK,
    cohorts: int | Unset = 12,
) -> Response[Any | ErrorBody | RetentionAnswer]:
    """Users by the week or month of their first event, and how many of them were active in each later one.

    Args:
        project_id (str):
        interval (RetentionInterval | Unset):  Default: RetentionInterval.WEEK.
        cohorts (int | Unset):  Default: 12.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | RetentionAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        interval=interval,
        cohorts=cohorts,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    interval: RetentionInterval | Unset = RetentionInterval.WEEK,
    cohorts: int | Unset = 12,
) -> Any | ErrorBody | RetentionAnswer | None:
    """Users by the week or month of their first event, and how many of them were active in each later one.

    Args:
        project_id (str):
        interval (RetentionInterval | Unset):  Default: RetentionInterval.WEEK.
        cohorts (int | Unset):  Default: 12.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | RetentionAnswer
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            interval=interval,
            cohorts=cohorts,
        )
    ).parsed
