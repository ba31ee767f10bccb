from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.error_body import ErrorBody
from ...models.report_answer import ReportAnswer
from ...models.report_body import ReportBody
from ...types import Response


def _get_kwargs(
    project_id: str,
    *,
    body: ReportBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/projects/{project_id}/analytics/report".format(
            project_id=quote(str(project_id), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ErrorBody | ReportAnswer | None:
    if response.status_code == 200:
        response_200 = ReportAnswer.from_dict(response.json())

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
) -> Response[Any | ErrorBody | ReportAnswer]:
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
    body: ReportBody,
) -> Response[Any | ErrorBody | ReportAnswer]:
    """Figures of chosen events and of the sessions that hold them, by hour, day, week or month.

     Without name and filters, and not by hour, the days before the project's `retention_floor` are
    answered about, too.

    Args:
        project_id (str):
        body (ReportBody): Which figures are asked for. Events are chosen by the window, the name
            and the filters. Example: {'compare': 'previous_period', 'end_date': '2024-03-31',
            'event_name': 'pageview', 'filters': [{'field': 'source', 'operator': 'is', 'value':
            'google'}], 'interval': 'day', 'start_date': '2024-03-30'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | ReportAnswer]
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
    body: ReportBody,
) -> Any | ErrorBody | ReportAnswer | None:
    """Figures of chosen events and of the sessions that hold them, by hour, day, week or month.

     Without name and filters, and not by hour, the days before the project's `retention_floor` are
    answered about, too.

    Args:
        project_id (str):
        body (ReportBody): Which figures are asked for. Events are chosen by the window, the name
            and the filters. Example: {'compare': 'previous_period', 'end_date': '2024-03-31',
            'event_name': 'pageview', 'filters': [{'field': 'source', 'operator': 'is', 'value':
            'google'}], 'interval': 'day', 'start_date': '2024-03-30'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | ReportAnswer
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
    body: ReportBody,
) -> Response[Any | ErrorBody | ReportAnswer]:
    """Figures of chosen events and of the sessions that hold them, by hour, day, week or month.

     Without name and filters, and not by hour, the days before the project's `retention_floor` are
    answered about, too.

    Args:
        project_id (str):
        body (ReportBody): Which figures are asked for. Events are chosen by the window, the name
            and the filters. Example: {'compare': 'previous_period', 'end_date': '2024-03-31',
            'event_name': 'pageview', 'filters': [{'field': 'source', 'operator': 'is', 'value':
            'google'}], 'interval': 'day', 'start_date': '2024-03-30'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorBody | ReportAnswer]
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
    body: ReportBody,
) -> Any | ErrorBody | ReportAnswer | None:
    """Figures of chosen events and of the sessions that hold them, by hour, day, week or month.

     Without name and filters, and not by hour, the days before the project's `retention_floor` are
    answered about, too.

    Args:
        project_id (str):
        body (ReportBody): Which figures are asked for. Events are chosen by the window, the name
            and the filters. Example: {'compare': 'previous_period', 'end_date': '2024-03-31',
            'event_name': 'pageview', 'filters': [{'field': 'source', 'operator': 'is', 'value':
            'google'}], 'interval': 'day', 'start_date': '2024-03-30'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorBody | ReportAnswer
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            body=body,
        )
    ).parsed
