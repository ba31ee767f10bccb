from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.events_answer import EventsAnswer
from ...types import UNSET, Response, Unset


def _get_kwargs(
    project_id: str,
    *,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    event_name: str | Unset = UNSET,
    filters: str | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    after_position: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["start_date"] = start_date

    params["end_date"] = end_date

    params["event_name"] = event_name

    params["filters"] = filters

    params["limit"] = limit

    params["cursor"] = cursor

    params["after_position"] = after_position

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/projects/{project_id}/events".format(
            project_id=quote(str(project_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ErrorBody | EventsAnswer | None:
    if response.status_code == 200:
        response_200 = EventsAnswer.from_dict(response.json())

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

    if response.status_code == 410:
        response_410 = ErrorBody.from_dict(response.json())

        return response_410

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
) -> Response[Any | ErrorBody | EventsAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    event_name: str | Unset = UNSET,
    filters: str | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    after_position: int | Unset = UNSET,
) -> Response[Any | ErrorBody | EventsAnswer]:
    """The recorded events of a window, page by page.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        event_name (str | Unset):
        filters (str | Unset):
        limit (int | Unset):  Default: 100.
        cursor (str | Unset):
        after_position (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | EventsAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        start_date=start_date,
        end_date=end_date,
        event_name=event_name,
        filters=filters,
        limit=limit,
        cursor=cursor,
        after_position=after_position,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    project_id: str,
    *,
    client: AuthenticatedClient,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    event_name: str | Unset = UNSET,
    filters: str | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    after_position: int | Unset = UNSET,
) -> Any | ErrorBody | EventsAnswer | None:
    """The recorded events of a window, page by page.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        event_name (str | Unset):
        filters (str | Unset):
        limit (int | Unset):  Default: 100.
        cursor (str | Unset):
        after_position (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | EventsAnswer
    """

    return sync_detailed(
        project_id=project_id,
        client=client,
        start_date=start_date,
        end_date=end_date,
        event_name=event_name,
        filters=filters,
        limit=limit,
        cursor=cursor,
        after_position=after_position,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    event_name: str | Unset = UNSET,
    filters: str | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    after_position: int | Unset = UNSET,
) -> Response[Any | ErrorBody | EventsAnswer]:
    """The recorded events of a window, page by page.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        event_name (str | Unset):
        filters (str | Unset):
        limit (int | Unset):  Default: 100.
        cursor (str | Unset):
        after_position (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | EventsAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        start_date=start_date,
        end_date=end_date,
        event_name=event_name,
        filters=filters,
        limit=limit,
        cursor=cursor,
        after_position=after_position,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    project_id: str,
    *,
    client: AuthenticatedClient,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    event_name: str | Unset = UNSET,
    filters: str | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    after_position: int | Unset = UNSET,
) -> Any | ErrorBody | EventsAnswer | None:
    """The recorded events of a window, page by page.

    Args:
        project_id (str):
        start_date (str | Unset):
        end_date (str | Unset):
        event_name (str | Unset):
        filters (str | Unset):
        limit (int | Unset):  Default: 100.
        cursor (str | Unset):
        after_position (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | EventsAnswer
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            start_date=start_date,
            end_date=end_date,
            event_name=event_name,
            filters=filters,
            limit=limit,
            cursor=cursor,
            after_position=after_position,
        )
    ).parsed
