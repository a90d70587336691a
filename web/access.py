"""Access to the page: the proof of a request, and the person and the role that it gives."""

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from sluice.roles import Role
from web.session import HEALTH, SIGN_IN, Session

STATIC = "/static/"
API = "/api/"
READING = ("GET", "HEAD")
"""Methods of requests that change nothing."""


@dataclass(frozen=True)
class Visitor:
    """The person who sends a request, and what this person may do."""

    name: str
    role: Role


STRANGER = Visitor("", Role.VIEWER)
"""The sender of a request to a public path."""


class Access(Protocol):
    """A way in which requests prove who sends them."""

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts at which the page answers."""

    @property
    def origins(self) -> frozenset[str]:
        """Origins of pages whose forms the page accepts."""

    @property
    def public(self) -> tuple[str, ...]:
        """Beginnings of paths that need no proof."""

    def admit(self, request: Request) -> Visitor | Response:
        """Return the person of a request, or the response that refuses the request."""


class TokenAccess:
    """Access by the page's token, or by the cookie of a sign-in with it. Everybody with one is the page's owner."""

    public = (SIGN_IN, STATIC, HEALTH)

    def __init__(self, session: Session) -> None:
        self._session = session
        self.hosts = local_hosts(session.port)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)

    def admit(self, request: Request) -> Visitor | Response:
        """Return the owner of the page, or a response: a redirection to the sign-in, or an error of the API."""
        if self._has_session(request):
            return Visitor(self._session.person, Role.OPERATOR)
        path = path_of(request)
        if path.startswith(API):
            why = "send the page's token: `Authorization: Bearer TOKEN`"
            return JSONResponse({"error": why}, 401, {"WWW-Authenticate": "Bearer"})
        target = path + (f"?{request.url.query}" if request.url.query else "")
        if request.method not in READING:  # nobody can open the address of a form
            target = "/"
        return RedirectResponse(f"{SIGN_IN}?next={quote(target)}", 303)

    def _has_session(self, request: Request) -> bool:
        return self._session.accepts_cookie(
            request.cookies.get(self._session.cookie_name, "")
        ) or self._session.accepts_bearer(request.headers.get("authorization", ""))


def local_hosts(port: int) -> frozenset[str]:
    """Return the hosts of a page on this machine."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))


def path_of(request: Request) -> str:
    """Return the path of a request that the routes see."""
    return str(request.scope["path"])
