from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.deliveries_answer import DeliveriesAnswer
from ...models.error_body import ErrorBody
from ...models.list_webhook_deliveries_status import ListWebhookDeliveriesStatus
from ...types import UNSET, Response, Unset


def _get_kwargs(
    webhook_id: str,
    *,
    limit: int | Unset = 20,
    starting_after: str | Unset = UNSET,
    status: ListWebhookDeliveriesStatus | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["starting_after"] = starting_after

    json_status: str | Unset = UNSET
    if not isinstance(status, Unset):
        json_status = status.value

    params["status"] = json_status

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/webhooks/{webhook_id}/deliveries".format(
            webhook_id=quote(str(webhook_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | DeliveriesAnswer | ErrorBody | None:
    if response.status_code == 200:
        response_200 = DeliveriesAnswer.from_dict(response.json())

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
) -> Response[Any | DeliveriesAnswer | ErrorBody]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    webhook_id: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    starting_after: str | Unset = UNSET,
    status: ListWebhookDeliveriesStatus | Unset = UNSET,
) -> Response[Any | DeliveriesAnswer | ErrorBody]:
    """What became of a webhook's notifications: the last 1,000, for at most 30 days.

    Args:
        webhook_id (str):
        limit (int | Unset):  Default: 20.
        starting_after (str | Unset):
        status (ListWebhookDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | DeliveriesAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        webhook_id=webhook_id,
        limit=limit,
        starting_after=starting_after,
        status=status,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    webhook_id: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    starting_after: str | Unset = UNSET,
    status: ListWebhookDeliveriesStatus | Unset = UNSET,
) -> Any | DeliveriesAnswer | ErrorBody | None:
    """What became of a webhook's notifications: the last 1,000, for at most 30 days.

    Args:
        webhook_id (str):
        limit (int | Unset):  Default: 20.
        starting_after (str | Unset):
        status (ListWebhookDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | DeliveriesAnswer | ErrorBody
    """

    return sync_detailed(
        webhook_id=webhook_id,
        client=client,
        limit=limit,
        starting_after=starting_after,
        status=status,
    ).parsed


async def asyncio_detailed(
    webhook_id: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    starting_after: str | Unset = UNSET,
    status: ListWebhookDeliveriesStatus | Unset = UNSET,
) -> Response[Any | DeliveriesAnswer | ErrorBody]:
    """What became of a webhook's notifications: the last 1,000, for at most 30 days.

    Args:
        webhook_id (str):
        limit (int | Unset):  Default: 20.
        starting_after (str | Unset):
        status (ListWebhookDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | DeliveriesAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        webhook_id=webhook_id,
        limit=limit,
        starting_after=starting_after,
        status=status,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    webhook_id: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    starting_after: str | Unset = UNSET,
    status: ListWebhookDeliveriesStatus | Unset = UNSET,
) -> Any | DeliveriesAnswer | ErrorBody | None:
    """What became of a webhook's notifications: the last 1,000, for at most 30 days.

    Args:
        webhook_id (str):
        limit (int | Unset):  Default: 20.
        starting_after (str | Unset):
        status (ListWebhookDeliveriesStatus | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | DeliveriesAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            webhook_id=webhook_id,
            client=client,
            limit=limit,
            starting_after=starting_after,
            status=status,
        )
    ).parsed
