"""Map errors of PyNessie, Nessie's REST API and HTTP to the domain's errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from pynessie.error import NessieException

from sluice.errors import BadEnvironment, CatalogRefused, ServiceUnavailable


class NessieRequestRefused(Exception):
    """Raised inside this package when Nessie understands a request and refuses it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"Nessie refuses with {status}: {message}")
        self.status = status


@contextmanager
def translate_nessie_errors(uri: str) -> Iterator[None]:
    """Translate errors of the lower layers to the domain's errors."""
    try:
        yield
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ServiceUnavailable(f"Nessie at {uri} does not answer; is it running, and is NESSIE_URI right?") from error
    except NessieRequestRefused as error:
        raise CatalogRefused(str(error)) from error
    except NessieException as error:
        if error.status_code in (401, 403):
            raise BadEnvironment(identity_refused_message(uri, error.status_code, str(error))) from error
        if error.status_code >= 500 or error.status_code == 429:
            raise ServiceUnavailable(f"Nessie at {uri} answers {error.status_code}: {error}") from error
        raise CatalogRefused(f"Nessie refuses with {error.status_code}: {error}") from error


def identity_refused_message(uri: str, status: int, message: str) -> str:
    """Return the message for a request that Nessie does not allow this process."""
    why = "does not accept the token of this process" if status == 401 else f"forbids this ({message})"
    return f"Nessie at {uri} {why}: are NESSIE_WRITER_TOKEN_FILE and NESSIE_PUBLISHER_TOKEN_FILE right?"
