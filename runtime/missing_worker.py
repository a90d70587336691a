"""The error of a request that no worker answers."""

from sluice.errors import ServiceUnavailable

START_A_WORKER = "start one with `make up` or `python worker.py`"


def no_worker(request: str) -> ServiceUnavailable:
    """Return the error of a request, such as `for RUN`, that no worker answers."""
    return ServiceUnavailable(f"no worker answers {request}: {START_A_WORKER}")
