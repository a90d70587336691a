"""The page in memory: the application of a person, and a browser that is signed in."""

from typing import cast

from temporalio.client import Client

from sluice.settings import Settings
from tests.harness.asgi import Browser
from web.app import make_app
from web.session import Session

SECRET = "a-token-of-a-test-that-nobody-can-guess"
PORT = 8240


def session(person: str = "ana") -> Session:
    """Return the session of a person's page."""
    return Session(SECRET, person, PORT)


def browser(client: object, person: str = "ana", *, signed_in: bool = True, **settings: object) -> Browser:
    """Return a browser at the page of a person.

    Args:
        client: the client of Temporal, or the part of one that the test needs.
        settings: settings of the installation and of approvals.
    """
    given, own = Settings.of(**{"sluice_installation": "test", **settings}), session(person)
    opened = Browser(make_app(cast(Client, client), given, own))
    if signed_in:
        opened.cookies[own.cookie_name] = own.cookie
    return opened
