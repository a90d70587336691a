"""Mapping of what the layer below raises to the domain's errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from pynessie.error import NessieException

from sluice.errors import ServiceUnavailable


@contextmanager
def nessie_failures(uri: str) -> Iterator[None]:
    """Turn an unreachable or overloaded Nessie into `ServiceUnavailable`; let its other answers pass."""
    try:
        yield
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ServiceUnavailable(f"Nessie at {uri} does not answer; is it running, and is NESSIE_URI right?") from error
    except NessieException as error:
        if error.status_code >= 500 or error.status_code == 429:
            raise ServiceUnavailable(f"Nessie at {uri} answers {error.status_code}: {error}") from error
        raise
