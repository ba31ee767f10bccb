from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.attribution_answer import AttributionAnswer
from ...models.error_body import ErrorBody
from ...models.revenue_by_attribution_dimension import RevenueByAttributionDimension
from ...models.revenue_by_attribution_level import RevenueByAttributionLevel
from ...models.revenue_by_attribution_model import RevenueByAttributionModel
from ...types import UNSET, Response, Unset


def _get_kwargs(
    project_id: str,
    *,
    model: RevenueByAttributionModel | Unset = RevenueByAttributionModel.FIRST_TOUCH,
    level: RevenueByAttributionLevel | Unset = RevenueByAttributionLevel.ACCOUNT,
    dimension: RevenueByAttributionDimension
    | Unset = RevenueByAttributionDimension.SOURCE,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 20,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_model: str | Unset = UNSET
    if not isinstance(model, Unset):
        json_model = model.value

    params["model"] = json_model

    json_level: str | Unset = UNSET
    if not isinstance(level, Unset):
        json_level = level.value

    params["level"] = json_level

    json_dimension: str | Unset = UNSET
    if not isinstance(dimension, Unset):
        json_dimension = dimension.value

    params["dimension"] = json_dimension

    params["start_date"] = start_date

    params["end_date"] = end_date

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/projects/{project_id}/revenue/by-attribution".format(
            project_id=quote(str(project_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | AttributionAnswer | ErrorBody | None:
    if response.status_code == 200:
        response_200 = AttributionAnswer.from_dict(response.json())

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
) -> Response[Any | AttributionAnswer | ErrorBody]:
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
    model: RevenueByAttributionModel | Unset = RevenueByAttributionModel.FIRST_TOUCH,
    level: RevenueByAttributionLevel | Unset = RevenueByAttributionLevel.ACCOUNT,
    dimension: RevenueByAttributionDimension
    | Unset = RevenueByAttributionDimension.SOURCE,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 20,
) -> Response[Any | AttributionAnswer | ErrorBody]:
    """Revenue of a window by the source, medium or campaign that brought the buyers.

    Args:
        project_id (str):
        model (RevenueByAttributionModel | Unset):  Default:
            RevenueByAttributionModel.FIRST_TOUCH.
        level (RevenueByAttributionLevel | Unset):  Default: RevenueByAttributionLevel.ACCOUNT.
        dimension (RevenueByAttributionDimension | Unset):  Default:
            RevenueByAttributionDimension.SOURCE.
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | AttributionAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        model=model,
        level=level,
        dimension=dimension,
        start_date=start_date,
        end_date=end_date,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    model: RevenueByAttributionModel | Unset = RevenueByAttributionModel.FIRST_TOUCH,
    level: RevenueByAttributionLevel | Unset = RevenueByAttributionLevel.ACCOUNT,
    dimension: RevenueByAttributionDimension
    | Unset = RevenueByAttributionDimension.SOURCE,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 20,
) -> Any | AttributionAnswer | ErrorBody | None:
    """Revenue of a window by the source, medium or campaign that brought the buyers.

    Args:
        project_id (str):
        model (RevenueByAttributionModel | Unset):  Default:
            RevenueByAttributionModel.FIRST_TOUCH.
        level (RevenueByAttributionLevel | Unset):  Default: RevenueByAttributionLevel.ACCOUNT.
        dimension (RevenueByAttributionDimension | Unset):  Default:
            RevenueByAttributionDimension.SOURCE.
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | AttributionAnswer | ErrorBody
    """

    return sync_detailed(
        project_id=project_id,
        client=client,
        model=model,
        level=level,
        dimension=dimension,
        start_date=start_date,
        end_date=end_date,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    model: RevenueByAttributionModel | Unset = RevenueByAttributionModel.FIRST_TOUCH,
    level: RevenueByAttributionLevel | Unset = RevenueByAttributionLevel.ACCOUNT,
    dimension: RevenueByAttributionDimension
    | Unset = RevenueByAttributionDimension.SOURCE,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 20,
) -> Response[Any | AttributionAnswer | ErrorBody]:
    """Revenue of a window by the source, medium or campaign that brought the buyers.

    Args:
        project_id (str):
        model (RevenueByAttributionModel | Unset):  Default:
            RevenueByAttributionModel.FIRST_TOUCH.
        level (RevenueByAttributionLevel | Unset):  Default: RevenueByAttributionLevel.ACCOUNT.
        dimension (RevenueByAttributionDimension | Unset):  Default:
            RevenueByAttributionDimension.SOURCE.
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | AttributionAnswer | ErrorBody]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        model=model,
        level=level,
        dimension=dimension,
        start_date=start_date,
        end_date=end_date,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    project_id: str,
    *,
    client: AuthenticatedClient | Client,
    model: RevenueByAttributionModel | Unset = RevenueByAttributionModel.FIRST_TOUCH,
    level: RevenueByAttributionLevel | Unset = RevenueByAttributionLevel.ACCOUNT,
    dimension: RevenueByAttributionDimension
    | Unset = RevenueByAttributionDimension.SOURCE,
    start_date: str | Unset = UNSET,
    end_date: str | Unset = UNSET,
    limit: int | Unset = 20,
) -> Any | AttributionAnswer | ErrorBody | None:
    """Revenue of a window by the source, medium or campaign that brought the buyers.

    Args:
        project_id (str):
        model (RevenueByAttributionModel | Unset):  Default:
            RevenueByAttributionModel.FIRST_TOUCH.
        level (RevenueByAttributionLevel | Unset):  Default: RevenueByAttributionLevel.ACCOUNT.
        dimension (RevenueByAttributionDimension | Unset):  Default:
            RevenueByAttributionDimension.SOURCE.
        start_date (str | Unset):
        end_date (str | Unset):
        limit (int | Unset):  Default: 20.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | AttributionAnswer | ErrorBody
    """

    return (
        await asyncio_detailed(
            project_id=project_id,
            client=client,
            model=model,
            level=level,
            dimension=dimension,
            start_date=start_date,
            end_date=end_date,
            limit=limit,
        )
    ).parsed
