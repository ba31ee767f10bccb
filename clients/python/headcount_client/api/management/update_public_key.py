from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.key_limit_answer import KeyLimitAnswer
from ...models.key_limit_shape import KeyLimitShape
from ...types import Response


def _get_kwargs(
    project_id: str,
    public_key: str,
    *,
    body: KeyLimitShape,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/projects/{project_id}/keys/{public_key}".format(
            project_id=quote(str(project_id), safe=""),
            public_key=quote(str(public_key), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | KeyLimitAnswer | None:
    if response.status_code == 200:
        response_200 = KeyLimitAnswer.from_dict(response.json())

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

    if response.status_code == 404:
        response_404 = ErrorBody.from_dict(response.json())

        return response_404

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
) -> Response[ErrorBody | KeyLimitAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    project_id: str,
    public_key: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeyLimitShape,
) -> Response[ErrorBody | KeyLimitAnswer]:
    """Changes how many events may be sent with a public key, or takes its rate limit away. It holds from
    the next request on, and
    for this key alone; a key whose limit was changed may send a whole burst at once.

    Args:
        project_id (str):
        public_key (str):
        body (KeyLimitShape): A change of a public key's rate limit: absent fields stay unchanged.
            Example: {'burst': 500, 'rate_limit': 100}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | KeyLimitAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        public_key=public_key,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    project_id: str,
    public_key: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeyLimitShape,
) -> ErrorBody | KeyLimitAnswer | None:
    """Changes how many events may be sent with a public key, or takes its rate limit away. It holds from
    the next request on, and
    for this key alone; a key whose limit was changed may send a whole burst at once.

    Args:
        project_id (str):
        public_key (str):
        body (KeyLimitShape): A change of a public key's rate limit: absent fields stay unchanged.
            Example: {'burst': 500, 'rate_limit': 100}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | KeyLimitAnswer
    """

    return sync_detailed(
        project_id=project_id,
        public_key=public_key,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    public_key: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeyLimitShape,
) -> Response[ErrorBody | KeyLimitAnswer]:
    """Changes how many events may be sent with a public key, or takes its rate limit away. It holds from
    the next request on, and
    for this key alone; a key whose limit was changed may send a whole burst at once.

    Args:
        project_id (str):
        public_key (str):
        body (KeyLimitShape): A change of a public key's rate limit: absent fields stay unchanged.
            Example: {'burst': 500, 'rate_limit': 100}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | KeyLimitAnswer]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        public_key=public_key,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    project_id: str,
    public_key: str,
    *,
    client: AuthenticatedClient | Client,
    body: KeyLimitShape,
) -> ErrorBody | KeyLimitAnswer | None:
    """Changes how many events may be sent with a public key, or takes its rate limit away. It holds from
    the next request on, and
    for this key alone; a key whose limit was changed may send a whole burst at once.

    Args:
        project_id (str):
        public_key (str):
        body (KeyLimitShape): A change of a public key's rate limit: absent fields stay unchanged.
            Example: {'burst': 500, 'rate_limit': 100}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | KeyLimitAnswer
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            public_key=public_key,
            client=client,
            body=body,
        )
    ).parsed
