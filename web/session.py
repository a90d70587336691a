"""The session of the page's owner: one secret of this home, and the cookie and form token derived from it.

The page serves the person who started it. Everybody who has the secret decides in the name of this person, so the
secret is in a private file and in the address that the start prints. The cookie and the form token are derived from
it, so that a browser stays signed in when the server restarts.
"""

import hashlib
import hmac
import os
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import BadEnvironment

SIGN_IN, HEALTH = "/sign-in", "/health"
_FILE = "page-token"
_BEARER = "Bearer "
_BYTES = 32
"""Number of random bytes of the secret."""
SHORTEST_SECRET = 32
"""Minimum length of a secret, in characters. An empty one would let everybody in."""


@dataclass(frozen=True)
class Session:
    """The session of one server of the page."""

    secret: str
    person: str
    """Name of the person who started the page, and who decides on it."""
    port: int

    @property
    def cookie_name(self) -> str:
        """Name of the cookie. It contains the port, because browsers share cookies between the ports of a host."""
        return f"sluice_session_{self.port}"

    @property
    def address(self) -> str:
        """Address that signs a browser in."""
        return f"{self.origin}{SIGN_IN}?token={self.secret}"

    @property
    def origin(self) -> str:
        """Address of the page."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> str:
        """Value of the cookie. The secret cannot be computed from it."""
        return self._derived("cookie")

    def form_token(self, person: str) -> str:
        """Return the value that each form of a person sends. Neither other sites nor other people know it."""
        return self._derived(f"form:{person}")

    def accepts_token(self, token: str) -> bool:
        """Return True if a token is the secret of this session."""
        return equal_secrets(token, self.secret)

    def accepts_bearer(self, header: str) -> bool:
        """Return True if an `Authorization` header has the secret of this session."""
        return header.startswith(_BEARER) and self.accepts_token(header.removeprefix(_BEARER))

    def accepts_cookie(self, value: str) -> bool:
        """Return True if a cookie is the one of this session."""
        return equal_secrets(value, self.cookie)

    def accepts_form(self, token: str, person: str) -> bool:
        """Return True if a form was served to a person by this session."""
        return equal_secrets(token, self.form_token(person))

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.secret.encode(), f"{purpose}:{self.port}".encode(), hashlib.sha256).hexdigest()


def token_file(home: Path) -> Path:
    """Return the file with the secret of the page of a home folder."""
    return home.absolute() / _FILE


def read_or_make_token(home: Path) -> str:
    """Return the secret of the page of a home folder. Make it, in a private file, if there is none.

    Raises:
        BadEnvironment: the file has no secret.
    """
    file = token_file(home)
    home.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        _make_token(file)
    secret = file.read_text().strip()
    if len(secret) < SHORTEST_SECRET:
        raise BadEnvironment(f"{file} has no token: delete it, and start the page again")
    return secret


def _make_token(file: Path) -> None:
    """Make the file whole, so that another page of this home that starts now reads all of it."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=f".{_FILE}-") as made:  # its mode is 0600
        made.write(secrets.token_urlsafe(_BYTES))
        made.flush()
        with suppress(FileExistsError):
            os.link(made.name, file)


def equal_secrets(given: str, expected: str) -> bool:
    """Compare two texts in the same time for every value."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())
