"""Guard every request: the host, the origin and the person, and the headers of every response."""

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web.access import API, READING, Access, Visitor, path_of

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

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

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
        """Return the response to a request that is refused, or None. The routes find the person in the request."""
        hosts = self._access.hosts
        if request.headers.get("host") not in hosts:  # a name that resolves to this machine is not ours
            return _refused(request, f"This page answers at {' and '.join(sorted(hosts))} only.", 421)
        if request.method not in READING and (why := self._foreign(request)):
            return _refused(request, why, 403)
        if path_of(request).startswith(self._access.public):
            return None
        admitted = self._access.admit(request)
        if not isinstance(admitted, Visitor):
            return admitted
        request.state.visitor = admitted
        return None

    def _foreign(self, request: Request) -> str:
        """Return the reason to refuse a request that changes something, or "". Programs send neither header."""
        origin = request.headers.get("origin")
        if origin is not None and origin not in self._access.origins:
            return f"This page accepts no requests from {origin[:200]}."
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "This page accepts no requests from other sites."
        return ""


def _refused(request: Request, why: str, status: int) -> Response:
    is_program = path_of(request).startswith(API)
    return JSONResponse({"error": why}, status) if is_program else PlainTextResponse(why, status)
