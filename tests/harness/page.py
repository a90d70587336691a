"""The page in memory: the application of a person or behind a proxy, and a browser that is signed in."""

from typing import cast

from temporalio.client import Client

from sluice.roles import parse_roles
from sluice.settings import Settings
from tests.harness.asgi import Browser
from web.app import make_app
from web.proxy import ProxyAccess
from web.session import Session
from web.timing import TIMING, PageTiming

SECRET = "a-token-of-a-test-that-nobody-can-guess"
PORT = 8240
PUBLIC = "https://sluice.example.org"
"""Address of the page behind a proxy."""
PROXY_SECRET = "a-secret-of-the-proxy-that-nobody-can-guess"
PERSON, GROUPS, SECRET_HEADER = "x-forwarded-user", "x-forwarded-groups", "x-proxy-secret"
_WITHOUT_WORKER = {"sluice_installation": "test", "sluice_worker_wait": 0.2}
"""Settings of an installation whose usual queue has no worker. A test with a worker names its own queue or wait."""
ROLES = "vera=viewer, ana=approver, otto=operator"
"""Roles of people behind the proxy."""


def session(person: str = "ana") -> Session:
    """Return the session of a person's page."""
    return Session(SECRET, person, PORT)


def browser(
    client: object, person: str = "ana", *, signed_in: bool = True, timing: PageTiming = TIMING, **settings: object
) -> Browser:
    """Return a browser at the page of a person.

    Args:
        client: the client of Temporal, or the part of one that the test needs.
        timing: intervals of the page.
        settings: settings of the installation and of approvals.
    """
    given, own = Settings.of(**{**_WITHOUT_WORKER, **settings}), session(person)
    opened = Browser(make_app(cast(Client, client), given, own, timing=timing))
    if signed_in:
        opened.cookies[own.cookie_name] = own.cookie
    return opened


def proxy_access(port: int = PORT, *, roles: str = ROLES, groups: bool = False) -> ProxyAccess:
    """Return the access through a proxy.

    Args:
        groups: True if the proxy names groups, so that the roles are those of groups.
    """
    return ProxyAccess(
        address=PUBLIC,
        person_header=PERSON,
        groups_header=GROUPS if groups else "",
        secret_header=SECRET_HEADER,
        secret=PROXY_SECRET,
        roles=parse_roles(roles),
        port=port,
    )


def behind_proxy(
    client: object, person: str = "otto", *, groups: str = "", roles: str = ROLES, installation: str = "test"
) -> Browser:
    """Return a browser whose requests reach the page through its proxy.

    Args:
        groups: groups of the person. If the proxy names any, the roles are those of groups.
        roles: roles of the people or of their groups.
    """
    proxy = proxy_access(roles=roles, groups=bool(groups))
    settings = Settings.of(**{**_WITHOUT_WORKER, "sluice_installation": installation})
    opened = Browser(make_app(cast(Client, client), settings, session("owner"), proxy))
    opened.headers = [(SECRET_HEADER, PROXY_SECRET), (PERSON, person), *([(GROUPS, groups)] if groups else [])]
    return opened
