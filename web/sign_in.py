"""Sign in by the token that the start of the page printed, and tell whether the server runs."""

import os
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from web.page import Page, ThePage
from web.session import HEALTH, SIGN_IN

router = APIRouter(include_in_schema=False)
"""Routes of a page without a proxy."""
health_router = APIRouter(include_in_schema=False)
_YEAR = 365 * 86400


@router.get(SIGN_IN)
async def sign_in(page: ThePage, token: str = "", next: str = "/") -> Response:
    """Sign in with the token of the printed address, or show the form for it."""
    return _signed_in(page, next) if page.session.accepts_token(token) else _form(page, next, wrong=bool(token))


@router.post(SIGN_IN)
async def sign_in_by_form(
    page: ThePage, token: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/"
) -> Response:
    """Sign in with a token that a person entered."""
    return _signed_in(page, next) if page.session.accepts_token(token.strip()) else _form(page, next, wrong=True)


@health_router.get(HEALTH)
async def health() -> PlainTextResponse:
    """Return the id of the process, which shows that this server runs and not another one."""
    return PlainTextResponse(str(os.getpid()))


def _signed_in(page: Page, target: str) -> Response:
    response = RedirectResponse(_local(target), 303)
    session = page.session
    response.set_cookie(session.cookie_name, session.cookie, max_age=_YEAR, httponly=True, samesite="strict", path="/")
    return response


def _form(page: Page, target: str, *, wrong: bool) -> HTMLResponse:
    return page.render("sign_in.html", "", 401, target=_local(target), wrong=wrong)


def _local(target: str) -> str:
    """Return an address of this page: the target, or home if the target is on another site."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/"
