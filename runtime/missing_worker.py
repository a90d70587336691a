"""The errors of a request that no worker answers, or that the worker cannot answer."""

from sluice.errors import ServiceUnavailable

START_A_WORKER = "start one with `make up` or `python worker.py`"


def no_worker(request: str) -> ServiceUnavailable:
    """Return the error of a request, such as `for RUN`, that no worker answers."""
    return ServiceUnavailable(f"no worker answers {request}: {START_A_WORKER}")


def cannot_continue(run: str, why: str) -> ServiceUnavailable:
    """Return the error of a run that the worker has, and cannot continue."""
    return ServiceUnavailable(
        f"the worker cannot continue {run}: {why}. Start a worker of the release that began the run, and it goes on, "
        f"or end it with `cancel {run}`"
    )
