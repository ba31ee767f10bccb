from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.token_answer import TokenAnswer
from ...models.token_patch_shape import TokenPatchShape
from ...types import Response


def _get_kwargs(
    token_id: str,
    *,
    body: TokenPatchShape,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api-tokens/{token_id}".format(
            token_id=quote(str(token_id), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | TokenAnswer | None:
    if response.status_code == 200:
        response_200 = TokenAnswer.from_dict(response.json())

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
) -> Response[ErrorBody | TokenAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    token_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: TokenPatchShape,
) -> Response[ErrorBody | TokenAnswer]:
    """Changes the name of a token, or how many requests may be sent with it, from the next request on. A
    token whose limit was changed may be used for a
    whole burst at once. A token of role admin changes none of role owner.

    Args:
        token_id (str):
        body (TokenPatchShape): A change of a token: absent fields stay unchanged. Example:
            {'burst': 50, 'rate_limit': 10}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TokenAnswer]
    """

    kwargs = _get_kwargs(
        token_id=token_id,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    token_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: TokenPatchShape,
) -> ErrorBody | TokenAnswer | None:
    """Changes the name of a token, or how many requests may be sent with it, from the next request on. A
    token whose limit was changed may be used for a
    whole burst at once. A token of role admin changes none of role owner.

    Args:
        token_id (str):
        body (TokenPatchShape): A change of a token: absent fields stay unchanged. Example:
            {'burst': 50, 'rate_limit': 10}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TokenAnswer
    """

    return sync_detailed(
        token_id=token_id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    token_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: TokenPatchShape,
) -> Response[ErrorBody | TokenAnswer]:
    """Changes the name of a token, or how many requests may be sent with it, from the next request on. A
    token whose limit was changed may be used for a
    whole burst at once. A token of role admin changes none of role owner.

    Args:
        token_id (str):
        body (TokenPatchShape): A change of a token: absent fields stay unchanged. Example:
            {'burst': 50, 'rate_limit': 10}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | TokenAnswer]
    """

    kwargs = _get_kwargs(
        token_id=token_id,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    token_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: TokenPatchShape,
) -> ErrorBody | TokenAnswer | None:
    """Changes the name of a token, or how many requests may be sent with it, from the next request on. A
    token whose limit was changed may be used for a
    whole burst at once. A token of role admin changes none of role owner.

    Args:
        token_id (str):
        body (TokenPatchShape): A change of a token: absent fields stay unchanged. Example:
            {'burst': 50, 'rate_limit': 10}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | TokenAnswer
    """

    return (
        await asyncio_detailed(
            token_id=token_id,
            client=client,
            body=body,
        )
    ).parsed
