"""Mapping of what the layer below raises to the domain's errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from pynessie.error import NessieException

from sluice.errors import BadEnvironment, ServiceUnavailable


@contextmanager
def translate_nessie_errors(uri: str) -> Iterator[None]:
    """Turn an unreachable or overloaded Nessie into `ServiceUnavailable`; let its other answers pass."""
    try:
        yield
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ServiceUnavailable(f"Nessie at {uri} does not answer; is it running, and is NESSIE_URI right?") from error
    except NessieException as error:
        if error.status_code in (401, 403):
            raise BadEnvironment(identity_refused_message(uri, error.status_code, str(error))) from error
        if error.status_code >= 500 or error.status_code == 429:
            raise ServiceUnavailable(f"Nessie at {uri} answers {error.status_code}: {error}") from error
        raise


def identity_refused_message(uri: str, status: int, said: str) -> str:
    """Say that Nessie does not take this process for one that may do this."""
    why = "knows no token of this process" if status == 401 else f"forbids this ({said})"
    return f"Nessie at {uri} {why}: are NESSIE_WRITER_TOKEN_FILE and NESSIE_PUBLISHER_TOKEN_FILE right?"
