"""Forms that change something: the token that each one sends, and the sentence that refuses one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException

from sluice.errors import Terminal
from web.page import ThePage

CONFLICT = 409
"""Status of the page that refuses a form."""


def _check_form(page: ThePage, form_token: Annotated[str, Form()] = "") -> None:
    """Refuse a form that this server did not serve."""
    if not page.session.accepts_form(form_token):
        raise HTTPException(403, "This form is not from this page. Open the page that it was on again, and repeat it.")


def form_router() -> APIRouter:
    """Return a router for forms: each request needs the token of a form of this page."""
    return APIRouter(include_in_schema=False, dependencies=[Depends(_check_form)])


def refusal_sentence(error: Terminal, consequence: str) -> str:
    """Return the sentence that tells a person why a form was refused.

    Args:
        consequence: `Nothing was decided`, for example.
    """
    text = str(error)
    return f"{consequence}: {text}" + ("" if text.endswith(".") else ".")
