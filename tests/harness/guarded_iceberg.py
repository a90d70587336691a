"""A REST catalog that requires bearer tokens and issues them by OAuth2, as a proxy before a server without either."""

import uuid

from aiohttp import web

from tests.harness.proxies import IcebergProxy

CLIENT, SECRET = "sluice", "secret-of-the-test"
_NOT_AUTHORIZED = {"error": {"message": "the token is not valid", "type": "NotAuthorizedException", "code": 401}}


class GuardedIceberg(IcebergProxy):
    """A proxy before a server of Iceberg's REST protocol. Tokens are valid until the test ends them."""

    def __init__(self, target: str) -> None:
        self.secret = SECRET
        """The secret that the client must send."""
        self.tokens: set[str] = set()
        """The valid tokens."""
        self.issued: list[str] = []
        self.refused: list[str] = []
        """The kinds of the requests without a valid token."""
        self.end_tokens_before = ""
        """A kind of request. Before the first request of this kind, every token becomes invalid."""
        super().__init__(target, lambda method, kind, number: None)

    @property
    def token_uri(self) -> str:
        """The address that issues tokens."""
        return f"{self.uri}/oauth/tokens"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/oauth/tokens":
            return await self._issue(request)
        kind = self._kind_of(request, await request.read())
        if kind == self.end_tokens_before:
            self.end_tokens_before = ""
            self.tokens.clear()
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            self.refused.append(kind)
            return web.json_response(_NOT_AUTHORIZED, status=401)
        return await super()._handle(request)

    async def _issue(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if (form["grant_type"], form["client_id"], form["client_secret"]) != (
            "client_credentials",
            CLIENT,
            self.secret,
        ):
            refusal = {"error": "invalid_client", "error_description": "unknown client or wrong secret"}
            return web.json_response(refusal, status=401)
        self.issued.append(f"token-{uuid.uuid4().hex}")
        self.tokens.add(self.issued[-1])
        return web.json_response({"access_token": self.issued[-1], "token_type": "bearer", "expires_in": 3600})
