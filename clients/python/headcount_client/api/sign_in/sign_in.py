from http import HTTPStatus
from typing import Any, cast

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.sign_in_shape import SignInShape
from ...types import Response


def _get_kwargs(
    *,
    body: SignInShape,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/session",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ErrorBody | None:
    if response.status_code == 204:
        response_204 = cast(Any, None)
        return response_204

    if response.status_code == 400:
        response_400 = ErrorBody.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = ErrorBody.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = ErrorBody.from_dict(response.json())

        return response_403

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
) -> Response[Any | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: SignInShape,
) -> Response[Any | ErrorBody]:
    """Signs a browser in: the answer gives it a cookie, which stands for the token for 14 days, or until
    the token ends.

     A browser that is signed in by another token stays so, unless `replace` is true: any page can have a
    browser open an address with a code. It should ask its user
    first. A code works once. The cookie of a share stands for the share. An address has 5 tries a
    second. The cookie counts wherever an API token does, but only
    in requests of the page itself: by `Sec-Fetch-Site: same-origin`, or, where browsers leave that out,
    by the `Origin` or, in reads, the `Referer`. It is
    `__Host-headcount` over https, and `headcount` over plain http.

    Args:
        body (SignInShape): What a browser signs in with. Exactly one of `token`, `code` and
            `share` is given. Example: {'token': 'sk_0123456789abcdefghijklmnopqrstuv'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: SignInShape,
) -> Any | ErrorBody | None:
    """Signs a browser in: the answer gives it a cookie, which stands for the token for 14 days, or until
    the token ends.

     A browser that is signed in by another token stays so, unless `replace` is true: any page can have a
    browser open an address with a code. It should ask its user
    first. A code works once. The cookie of a share stands for the share. An address has 5 tries a
    second. The cookie counts wherever an API token does, but only
    in requests of the page itself: by `Sec-Fetch-Site: same-origin`, or, where browsers leave that out,
    by the `Origin` or, in reads, the `Referer`. It is
    `__Host-headcount` over https, and `headcount` over plain http.

    Args:
        body (SignInShape): What a browser signs in with. Exactly one of `token`, `code` and
            `share` is given. Example: {'token': 'sk_0123456789abcdefghijklmnopqrstuv'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: SignInShape,
) -> Response[Any | ErrorBody]:
    """Signs a browser in: the answer gives it a cookie, which stands for the token for 14 days, or until
    the token ends.

     A browser that is signed in by another token stays so, unless `replace` is true: any page can have a
    browser open an address with a code. It should ask its user
    first. A code works once. The cookie of a share stands for the share. An address has 5 tries a
    second. The cookie counts wherever an API token does, but only
    in requests of the page itself: by `Sec-Fetch-Site: same-origin`, or, where browsers leave that out,
    by the `Origin` or, in reads, the `Referer`. It is
    `__Host-headcount` over https, and `headcount` over plain http.

    Args:
        body (SignInShape): What a browser signs in with. Exactly one of `token`, `code` and
            `share` is given. Example: {'token': 'sk_0123456789abcdefghijklmnopqrstuv'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: SignInShape,
) -> Any | ErrorBody | None:
    """Signs a browser in: the answer gives it a cookie, which stands for the token for 14 days, or until
    the token ends.

     A browser that is signed in by another token stays so, unless `replace` is true: any page can have a
    browser open an address with a code. It should ask its user
    first. A code works once. The cookie of a share stands for the share. An address has 5 tries a
    second. The cookie counts wherever an API token does, but only
    in requests of the page itself: by `Sec-Fetch-Site: same-origin`, or, where browsers leave that out,
    by the `Origin` or, in reads, the `Referer`. It is
    `__Host-headcount` over https, and `headcount` over plain http.

    Args:
        body (SignInShape): What a browser signs in with. Exactly one of `token`, `code` and
            `share` is given. Example: {'token': 'sk_0123456789abcdefghijklmnopqrstuv'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
