from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.organization_answer import OrganizationAnswer
from ...models.organization_patch_shape import OrganizationPatchShape
from ...types import Response


def _get_kwargs(
    *,
    body: OrganizationPatchShape,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/organization",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorBody | OrganizationAnswer | None:
    if response.status_code == 200:
        response_200 = OrganizationAnswer.from_dict(response.json())

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
) -> Response[ErrorBody | OrganizationAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: OrganizationPatchShape,
) -> Response[ErrorBody | OrganizationAnswer]:
    """Changes the caller's organization: all fields of the body, or none. After the first event the
    timezone (409 `timezone_fixed`) and
    the currency (409 `currency_fixed`) can't change.

    Args:
        body (OrganizationPatchShape): A change of the organization: absent fields stay unchanged.
            Example: {'fx_rates': {'EUR': 1.08}, 'name': 'Acme', 'timezone': 'Europe/Berlin'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | OrganizationAnswer]
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
    client: AuthenticatedClient | Client,
    body: OrganizationPatchShape,
) -> ErrorBody | OrganizationAnswer | None:
    """Changes the caller's organization: all fields of the body, or none. After the first event the
    timezone (409 `timezone_fixed`) and
    the currency (409 `currency_fixed`) can't change.

    Args:
        body (OrganizationPatchShape): A change of the organization: absent fields stay unchanged.
            Example: {'fx_rates': {'EUR': 1.08}, 'name': 'Acme', 'timezone': 'Europe/Berlin'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | OrganizationAnswer
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: OrganizationPatchShape,
) -> Response[ErrorBody | OrganizationAnswer]:
    """Changes the caller's organization: all fields of the body, or none. After the first event the
    timezone (409 `timezone_fixed`) and
    the currency (409 `currency_fixed`) can't change.

    Args:
        body (OrganizationPatchShape): A change of the organization: absent fields stay unchanged.
            Example: {'fx_rates': {'EUR': 1.08}, 'name': 'Acme', 'timezone': 'Europe/Berlin'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorBody | OrganizationAnswer]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: OrganizationPatchShape,
) -> ErrorBody | OrganizationAnswer | None:
    """Changes the caller's organization: all fields of the body, or none. After the first event the
    timezone (409 `timezone_fixed`) and
    the currency (409 `currency_fixed`) can't change.

    Args:
        body (OrganizationPatchShape): A change of the organization: absent fields stay unchanged.
            Example: {'fx_rates': {'EUR': 1.08}, 'name': 'Acme', 'timezone': 'Europe/Berlin'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorBody | OrganizationAnswer
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
