from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.batch_answer import BatchAnswer
from ...models.batch_shape import BatchShape
from ...models.error_body import ErrorBody
from ...types import Response


def _get_kwargs(
    project_id: str,
    *,
    body: BatchShape,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/projects/{project_id}/import".format(
            project_id=quote(str(project_id), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> BatchAnswer | ErrorBody | None:
    if response.status_code == 202:
        response_202 = BatchAnswer.from_dict(response.json())

        return response_202

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
) -> Response[BatchAnswer | ErrorBody]:
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
    body: BatchShape,
) -> Response[BatchAnswer | ErrorBody]:
    """Records a batch that may have rows of an export, which keep everything that was decided about them:
    visitors, consent, money, companies, agents,
    countries and acquisition. Their `position` and `received_at` are new. No policy of the project
    applies to them again.

     A row whose day would be another one in this organization is refused with `timezone_mismatch`, one
    whose money was converted to other currencies
    with `currency_mismatch`. Without `_v`, an event is one that a server sends. It may say what another
    product found out about its visitor:
    `"_import": {"browser", "browser_version", "os", "device", "location_country"}`, all optional.

    Args:
        project_id (str):
        body (BatchShape): A batch of events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BatchAnswer | ErrorBody]
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
    client: AuthenticatedClient,
    body: BatchShape,
) -> BatchAnswer | ErrorBody | None:
    """Records a batch that may have rows of an export, which keep everything that was decided about them:
    visitors, consent, money, companies, agents,
    countries and acquisition. Their `position` and `received_at` are new. No policy of the project
    applies to them again.

     A row whose day would be another one in this organization is refused with `timezone_mismatch`, one
    whose money was converted to other currencies
    with `currency_mismatch`. Without `_v`, an event is one that a server sends. It may say what another
    product found out about its visitor:
    `"_import": {"browser", "browser_version", "os", "device", "location_country"}`, all optional.

    Args:
        project_id (str):
        body (BatchShape): A batch of events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BatchAnswer | ErrorBody
    """

    return sync_detailed(
        project_id=project_id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient,
    body: BatchShape,
) -> Response[BatchAnswer | ErrorBody]:
    """Records a batch that may have rows of an export, which keep everything that was decided about them:
    visitors, consent, money, companies, agents,
    countries and acquisition. Their `position` and `received_at` are new. No policy of the project
    applies to them again.

     A row whose day would be another one in this organization is refused with `timezone_mismatch`, one
    whose money was converted to other currencies
    with `currency_mismatch`. Without `_v`, an event is one that a server sends. It may say what another
    product found out about its visitor:
    `"_import": {"browser", "browser_version", "os", "device", "location_country"}`, all optional.

    Args:
        project_id (str):
        body (BatchShape): A batch of events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BatchAnswer | ErrorBody]
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
    client: AuthenticatedClient,
    body: BatchShape,
) -> BatchAnswer | ErrorBody | None:
    """Records a batch that may have rows of an export, which keep everything that was decided about them:
    visitors, consent, money, companies, agents,
    countries and acquisition. Their `position` and `received_at` are new. No policy of the project
    applies to them again.

     A row whose day would be another one in this organization is refused with `timezone_mismatch`, one
    whose money was converted to other currencies
    with `currency_mismatch`. Without `_v`, an event is one that a server sends. It may say what another
    product found out about its visitor:
    `"_import": {"browser", "browser_version", "os", "device", "location_country"}`, all optional.

    Args:
        project_id (str):
        body (BatchShape): A batch of events.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BatchAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            body=body,
        )
    ).parsed
