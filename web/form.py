"""Forms that change something: the token that each one sends, and the answer to one."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException
from fastapi.responses import RedirectResponse, Response

from sluice.errors import BadEnvironment, Terminal
from web.page import ThePage

CONFLICT = 409
"""Status of the page that refuses a form."""


def _check_form(page: ThePage, form_token: Annotated[str, Form()] = "") -> None:
    """Refuse a form that this server did not serve."""
    if not page.session.accepts_form(form_token, page.visitor.name):
        raise HTTPException(403, "This form is not from this page. Open the page that it was on again, and repeat it.")


def form_router() -> APIRouter:
    """Return a router for forms: each request needs the token of a form of this page."""
    return APIRouter(include_in_schema=False, dependencies=[Depends(_check_form)])


async def answer_form(
    action: Awaitable[str], refuse: Callable[[str], Awaitable[Response]], consequence: str
) -> Response:
    """Carry out the action of a form, and lead to the address that it returns.

    Args:
        refuse: returns the page that shows why the action was refused.
        consequence: `Nothing was decided`, for example.
    """
    try:
        return RedirectResponse(await action, 303)
    except BadEnvironment:  # of the page, not of the request
        raise
    except Terminal as error:
        return await refuse(refusal_sentence(error, consequence))


def refusal_sentence(error: Terminal, consequence: str) -> str:
    """Return the sentence that tells a person why a form was refused.

    Args:
        consequence: `Nothing was decided`, for example.
    """
    text = str(error)
    return f"{consequence}: {text}" + ("" if text.endswith(".") else ".")
