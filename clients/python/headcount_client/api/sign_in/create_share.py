from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.new_share_answer import NewShareAnswer
from ...models.new_share_shape import NewShareShape
from ...types import Response


def _get_kwargs(
    project_id: str,
    *,
    body: NewShareShape,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/projects/{project_id}/shares".format(
            project_id=quote(str(project_id), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | NewShareAnswer | None:
    if response.status_code == 201:
        response_201 = NewShareAnswer.from_dict(response.json())

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
) -> Response[ErrorBody | NewShareAnswer]:
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
    body: NewShareShape,
) -> Response[ErrorBody | NewShareAnswer]:
    """Makes a share: a link that shows the figures of the project to whoever has it, and nothing else. It
    shows no people and no companies: not their lists,
    no metadata, no `user_id` and no `group_id`; money only with `revenue`. All readers of a share
    together may send 100 requests a second.

    Args:
        project_id (str):
        body (NewShareShape): A share to be made. Example: {'embed_origins':
            ['https://intranet.example'], 'expires_at': '2030-01-01T00:00:00Z', 'name': 'For
            investors', 'revenue': True}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | NewShareAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: NewShareShape,
) -> ErrorBody | NewShareAnswer | None:
    """Makes a share: a link that shows the figures of the project to whoever has it, and nothing else. It
    shows no people and no companies: not their lists,
    no metadata, no `user_id` and no `group_id`; money only with `revenue`. All readers of a share
    together may send 100 requests a second.

    Args:
        project_id (str):
        body (NewShareShape): A share to be made. Example: {'embed_origins':
            ['https://intranet.example'], 'expires_at': '2030-01-01T00:00:00Z', 'name': 'For
            investors', 'revenue': True}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | NewShareAnswer
    """

    return sync_detailed(
        project_id=project_id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: NewShareShape,
) -> Response[ErrorBody | NewShareAnswer]:
    """Makes a share: a link that shows the figures of the project to whoever has it, and nothing else. It
    shows no people and no companies: not their lists,
    no metadata, no `user_id` and no `group_id`; money only with `revenue`. All readers of a share
    together may send 100 requests a second.

    Args:
        project_id (str):
        body (NewShareShape): A share to be made. Example: {'embed_origins':
            ['https://intranet.example'], 'expires_at': '2030-01-01T00:00:00Z', 'name': 'For
            investors', 'revenue': True}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | NewShareAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: NewShareShape,
) -> ErrorBody | NewShareAnswer | None:
    """Makes a share: a link that shows the figures of the project to whoever has it, and nothing else. It
    shows no people and no companies: not their lists,
    no metadata, no `user_id` and no `group_id`; money only with `revenue`. All readers of a share
    together may send 100 requests a second.

    Args:
        project_id (str):
        body (NewShareShape): A share to be made. Example: {'embed_origins':
            ['https://intranet.example'], 'expires_at': '2030-01-01T00:00:00Z', 'name': 'For
            investors', 'revenue': True}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | NewShareAnswer
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            body=body,
        )
    ).parsed
