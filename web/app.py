"""The web application: its routes, its guard, and one page for each kind of error."""

from pathlib import Path

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp
from temporalio.client import Client
from temporalio.service import RPCError

from sluice.errors import BadEnvironment, SluiceError, Terminal, Transient
from sluice.settings import Settings
from web import api, events, sign_in
from web.access import API, Access, TokenAccess, path_of
from web.actions import check_role
from web.api_router import describe_api
from web.approval import views as approval
from web.approval.slack import SlackActions, accepts_slack
from web.arrivals import actions as arrival_actions
from web.arrivals import views as arrivals
from web.attention import AttentionReader
from web.audit.history import VerdictHistory
from web.backfills import views as backfills
from web.guard import Guard
from web.lake import api as lake_api
from web.lake import views as lake
from web.page import Page, page_of
from web.pipeline import views as pipeline
from web.publishing import views as publishing
from web.quarantine import actions as quarantine_actions
from web.quarantine import views as quarantine
from web.run import again, diff
from web.run import views as run
from web.run.board import Board
from web.run.run_view import RunViews
from web.run.statuses import Statuses
from web.schedules import api as schedules_api
from web.schedules import views as schedules
from web.session import SIGN_IN, Session
from web.timing import TIMING, PageTiming

_LONGEST_ERROR = 5_000
"""Maximum length of an error, in characters. An error may repeat parts of a request."""
_STATIC = Path(__file__).parent / "static"
_ROUTERS = (
    *(
        sign_in.health_router,
        run.router,
        again.router,
        diff.router,
        approval.router,
        lake.router,
        arrivals.router,
        arrival_actions.router,
        backfills.router,
    ),
    *(quarantine.router, quarantine_actions.router, publishing.router, publishing.forms),
    *(api.router, lake_api.router, schedules_api.router),
    *(schedules.router, pipeline.router, events.router),
)


def all_routes() -> list[APIRoute]:
    """Return every route of the page, with those that only a page without a proxy has."""
    routes = [route for router in (sign_in.router, *_ROUTERS) for route in router.routes]
    return [route for route in routes if isinstance(route, APIRoute)]


def make_app(
    client: Client, settings: Settings, session: Session, proxy: Access | None = None, timing: PageTiming = TIMING
) -> ASGIApp:
    """Return the application of one server, behind its guard.

    Args:
        settings: settings with the id of the reached installation.
        proxy: the proxy that names the people; None means that the token of the session gives access.
    """
    statuses = Statuses(timing.patience)
    page = Page(
        client=client,
        settings=settings,
        session=session,
        board=Board(client, statuses, timing),
        views=RunViews(client, statuses),
        attention=AttentionReader(client, settings.installation, timing),
        history=VerdictHistory(client, settings.installation, timing),
        has_proxy=proxy is not None,
        timing=timing,
    )
    app = FastAPI(
        title="Sluice",
        version="1",
        openapi_url=f"{API}openapi.json",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(check_role)],
    )
    app.openapi = lambda: describe_api(app)  # type: ignore[method-assign]
    app.state.page = page
    for router in _ROUTERS if proxy else (sign_in.router, *_ROUTERS):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    for error in (SluiceError, RPCError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(error, _show_error)
    # The guard is outside of everything, so that every response has its headers.
    guarded = Guard(app, proxy or TokenAccess(session))
    return SlackActions(guarded, page) if accepts_slack(settings.notifications) else guarded


async def _show_error(request: Request, error: Exception) -> Response:
    """Return an error as a page, or as JSON to a program."""
    status, heading, text = _described(error)
    text = text.encode(errors="replace").decode()[:_LONGEST_ERROR]  # a body in JSON may have half a character
    headers = error.headers if isinstance(error, HTTPException) else None
    if path_of(request).startswith(API):
        return JSONResponse({"error": text}, status, headers)
    page = page_of(request)
    here = "" if path_of(request).startswith(SIGN_IN) else " "  # a person who is signed in keeps the navigation
    answer = page.render("error.html", here, status, heading=heading, text=text)
    answer.headers.update(headers or {})
    return answer


_HEADINGS = {404: "Not found", 403: "Refused"}


def _detail(error: HTTPException) -> str:
    is_unknown_route = error.status_code == 404 and error.detail == "Not Found"
    return "There is no page at this address." if is_unknown_route else str(error.detail)


def _described(error: Exception) -> tuple[int, str, str]:
    """Return the status, the heading and the text of an error."""
    if isinstance(error, HTTPException):
        return error.status_code, _HEADINGS.get(error.status_code, "Error"), _detail(error)
    if isinstance(error, RequestValidationError):
        wrong = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        return 400, "This request is not valid", wrong
    if isinstance(error, RPCError):
        return 503, "Temporal does not answer", error.message
    if isinstance(error, Terminal) and not isinstance(error, BadEnvironment):
        return 400, "This request is not valid", str(error).removeprefix("--")
    if isinstance(error, Transient):
        return 503, "Not available now", str(error)
    known = isinstance(error, SluiceError)
    return 500, "Error", str(error) if known else "The page has a defect here. Its log names it."
