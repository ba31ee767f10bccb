from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.traffic_answer import TrafficAnswer
from ...types import UNSET, Response, Unset


def _get_kwargs(
    project_id: str,
    *,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["start_date"] = start_date

    params["end_date"] = end_date

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/projects/{project_id}/analytics/traffic".format(
            project_id=quote(str(project_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ErrorBody | TrafficAnswer | None:
    if response.status_code == 200:
        response_200 = TrafficAnswer.from_dict(response.json())

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
) -> Response[Any | ErrorBody | TrafficAnswer]:
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
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Response[Any | ErrorBody | TrafficAnswer]:
    """Sessions of a window by channel, source, medium and campaign, also of days before the project's
    `retention_floor`.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | TrafficAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        start_date=start_date,
        end_date=end_date,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Any | ErrorBody | TrafficAnswer | None:
    """Sessions of a window by channel, source, medium and campaign, also of days before the project's
    `retention_floor`.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | TrafficAnswer
    """

    return sync_detailed(
        project_id=project_id,
        client=client,
        start_date=start_date,
        end_date=end_date,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Response[Any | ErrorBody | TrafficAnswer]:
    """Sessions of a window by channel, source, medium and campaign, also of days before the project's
    `retention_floor`.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | TrafficAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        start_date=start_date,
        end_date=end_date,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Any | ErrorBody | TrafficAnswer | None:
    """Sessions of a window by channel, source, medium and campaign, also of days before the project's
    `retention_floor`.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | TrafficAnswer
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            start_date=start_date,
            end_date=end_date,
            limit=limit,
        )
    ).parsed
