from http import HTTPStatus
from typing import Any, cast

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.completed_top_identities_answer import CompletedTopIdentitiesAnswer
from ...models.error_body import ErrorBody
from ...models.top_identities_sort import TopIdentitiesSort
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
    sort: TopIdentitiesSort | Unset = TopIdentitiesSort.EVENTS,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["range_days"] = range_days

    params["limit"] = limit

    json_sort: str | Unset = UNSET
    if not isinstance(sort, Unset):
        json_sort = sort.value

    params["sort"] = json_sort

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/identities/top",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | CompletedTopIdentitiesAnswer | ErrorBody | None:
    if response.status_code == 200:
        response_200 = CompletedTopIdentitiesAnswer.from_dict(response.json())

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
) -> Response[Any | CompletedTopIdentitiesAnswer | ErrorBody]:
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
    sort: TopIdentitiesSort | Unset = TopIdentitiesSort.EVENTS,
) -> Response[Any | CompletedTopIdentitiesAnswer | ErrorBody]:
    """The identities with a `user_id` or an e-mail address that were active in the last days, over all
    projects. It costs a pass over the events of these days.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.
        sort (TopIdentitiesSort | Unset):  Default: TopIdentitiesSort.EVENTS.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedTopIdentitiesAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        range_days=range_days,
        limit=limit,
        sort=sort,
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
    sort: TopIdentitiesSort | Unset = TopIdentitiesSort.EVENTS,
) -> Any | CompletedTopIdentitiesAnswer | ErrorBody | None:
    """The identities with a `user_id` or an e-mail address that were active in the last days, over all
    projects. It costs a pass over the events of these days.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.
        sort (TopIdentitiesSort | Unset):  Default: TopIdentitiesSort.EVENTS.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedTopIdentitiesAnswer | ErrorBody
    """

    return sync_detailed(
        client=client,
        range_days=range_days,
        limit=limit,
        sort=sort,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
    sort: TopIdentitiesSort | Unset = TopIdentitiesSort.EVENTS,
) -> Response[Any | CompletedTopIdentitiesAnswer | ErrorBody]:
    """The identities with a `user_id` or an e-mail address that were active in the last days, over all
    projects. It costs a pass over the events of these days.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.
        sort (TopIdentitiesSort | Unset):  Default: TopIdentitiesSort.EVENTS.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedTopIdentitiesAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        range_days=range_days,
        limit=limit,
        sort=sort,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    range_days: int | Unset = 30,
    limit: int | Unset = 20,
    sort: TopIdentitiesSort | Unset = TopIdentitiesSort.EVENTS,
) -> Any | CompletedTopIdentitiesAnswer | ErrorBody | None:
    """The identities with a `user_id` or an e-mail address that were active in the last days, over all
    projects. It costs a pass over the events of these days.

    Args:
        range_days (int | Unset):  Default: 30.
        limit (int | Unset):  Default: 20.
        sort (TopIdentitiesSort | Unset):  Default: TopIdentitiesSort.EVENTS.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedTopIdentitiesAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            range_days=range_days,
            limit=limit,
            sort=sort,
        )
    ).parsed
