"""Errors, token, waiting and description that all routes of the API share."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Security
from fastapi.security import HTTPBearer
from pydantic import Field

from sluice.base_model import StrictModel

LONGEST = 1_000
"""Maximum length of a name of a run, a table, a check or columns, in characters."""
_LONGEST_WAIT = 60
"""Maximum time that a request waits for an end, in seconds."""
_CLIENT_LEFT = 499
"""Status of a response whose client has closed the connection. No client receives it."""
_TOKEN = HTTPBearer(
    auto_error=False, description="The token of the page. Behind a proxy, the proxy signs in, and there is no token."
)
"""The token, for the description alone: web/guard.py verifies it."""
Wait = Annotated[
    int,
    Query(ge=0, le=_LONGEST_WAIT, description="Time to wait for the end, in seconds. The answer comes at the end."),
]
_T = TypeVar("_T")


class ApiError(StrictModel):
    """An error."""

    error: str = Field(description="What is wrong, in one sentence.")


_ERRORS: Mapping[int, str] = {
    400: "The request is wrong.",
    401: "The token is missing or wrong.",
    403: "The person may not do this.",
    404: "There is no such run, start or pipeline.",
    409: "The decision or the start was refused.",
    503: "Temporal, a worker or the catalog does not answer.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of the errors that a route answers with."""
    return {status: {"model": ApiError, "description": _ERRORS[status]} for status in statuses}


def api_router(tag: str) -> APIRouter:
    """Return a router for routes of the API."""
    return APIRouter(prefix="/api", tags=[tag], responses=errors(400, 401, 403, 503), dependencies=[Security(_TOKEN)])


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the description of the API by OpenAPI, without the answer 422: a wrong request gets 400."""
    described = FastAPI.openapi(app)
    for operations in described["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    for unused in ("HTTPValidationError", "ValidationError"):
        described["components"]["schemas"].pop(unused, None)
    return described


async def while_connected(request: Request, answer: Awaitable[_T]) -> _T:
    """Wait for an answer. Cancel it if the client leaves before."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.create_task(_has_left(request))
    try:
        await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise HTTPException(_CLIENT_LEFT, "The client left before the answer.")
        return answering.result()
    except asyncio.CancelledError:  # the server stops, and would log a traceback
        raise HTTPException(503, "The page is stopping: repeat the request.") from None
    finally:
        answering.cancel()
        leaving.cancel()
        await asyncio.wait([answering, leaving])


async def _has_left(request: Request) -> None:
    """Return when the client of a request has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
