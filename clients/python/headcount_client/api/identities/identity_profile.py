from http import HTTPStatus
from typing import Any, cast

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.completed_profile_answer import CompletedProfileAnswer
from ...models.error_body import ErrorBody
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    email: str | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["start_date"] = start_date

    params["end_date"] = end_date

    params["email"] = email

    params["user_id"] = user_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/identities/profile",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | CompletedProfileAnswer | ErrorBody | None:
    if response.status_code == 200:
        response_200 = CompletedProfileAnswer.from_dict(response.json())

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
) -> Response[Any | CompletedProfileAnswer | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    email: str | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Response[Any | CompletedProfileAnswer | ErrorBody]:
    """The figures of a user in a window, over all projects.

    Args:
        start_date (str | Unset):
        end_date (str | Unset):
        email (str | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedProfileAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        start_date=start_date,
        end_date=end_date,
        email=email,
        user_id=user_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    email: str | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Any | CompletedProfileAnswer | ErrorBody | None:
    """The figures of a user in a window, over all projects.

    Args:
        start_date (str | Unset):
        end_date (str | Unset):
        email (str | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedProfileAnswer | ErrorBody
    """

    return sync_detailed(
        client=client,
        start_date=start_date,
        end_date=end_date,
        email=email,
        user_id=user_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    email: str | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Response[Any | CompletedProfileAnswer | ErrorBody]:
    """The figures of a user in a window, over all projects.

    Args:
        start_date (str | Unset):
        end_date (str | Unset):
        email (str | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CompletedProfileAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        start_date=start_date,
        end_date=end_date,
        email=email,
        user_id=user_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    email: str | Unset = UNSET,
    user_id: str | Unset = UNSET,
) -> Any | CompletedProfileAnswer | ErrorBody | None:
    """The figures of a user in a window, over all projects.

    Args:
        start_date (str | Unset):
        end_date (str | Unset):
        email (str | Unset):
        user_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CompletedProfileAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            start_date=start_date,
            end_date=end_date,
            email=email,
            user_id=user_id,
        )
    ).parsed
