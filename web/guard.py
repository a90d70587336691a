"""Guard every request: the host, the origin and the session, and the headers of every response."""

from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web.session import HEALTH, SIGN_IN, Session

_PUBLIC = (SIGN_IN, "/static/", HEALTH)
"""Paths that need no session."""
_READING = ("GET", "HEAD")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every response. Source: OWASP's HTTP headers cheat sheet."""


class Guard:
    """ASGI middleware in front of all routes."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app, self._session = app, session
        self._hosts = {f"{name}:{session.port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused; pass any other on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Request(scope))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await (refused or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Return the response to a request that is refused, or None."""
        if request.headers.get("host") not in self._hosts:  # a name that resolves to this machine is not ours
            return PlainTextResponse(f"This page answers at {' and '.join(sorted(self._hosts))} only.", 421)
        if request.method not in _READING and (why := self._foreign(request)):
            return PlainTextResponse(why, 403)
        path = str(request.scope["path"])  # the path that the routes see
        if path.startswith(_PUBLIC) or self._has_session(request):
            return None
        if path.startswith("/api/"):
            return JSONResponse({"error": "send the page's token: `Authorization: Bearer TOKEN`"}, 401)
        target = path + (f"?{request.url.query}" if request.url.query else "")
        if request.method not in _READING:  # nobody can open the address of a form
            target = "/"
        return RedirectResponse(f"{SIGN_IN}?next={quote(target)}", 303)

    def _foreign(self, request: Request) -> str:
        """Return the reason to refuse a request that changes something, or "". Programs send neither header."""
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return f"This page accepts no requests from {origin[:200]}."
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "This page accepts no requests from other sites."
        return ""

    def _has_session(self, request: Request) -> bool:
        return self._session.accepts_cookie(
            request.cookies.get(self._session.cookie_name, "")
        ) or self._session.accepts_bearer(request.headers.get("authorization", ""))
