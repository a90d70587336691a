"""The errors of a request that no worker answers, or that the worker cannot answer."""

from sluice.errors import ServiceUnavailable

NO_SERVER_NOTE = "Temporal does not answer"
START_A_WORKER = "start one with `make up` or `python worker.py`"


def no_worker(request: str) -> ServiceUnavailable:
    """Return the error of a request, such as `for RUN`, that no worker answers."""
    return ServiceUnavailable(f"no worker answers {request}: {START_A_WORKER}")


def cannot_continue(workflow: str, why: str, ending: str) -> ServiceUnavailable:
    """Return the error of a run, landing zone or backfill that the worker has, and cannot continue.

    Args:
        ending: the way to end it, such as `with CANCEL`.
    """
    return ServiceUnavailable(
        f"the worker cannot continue {workflow}: {why}. Start a worker of the release that began it, and it goes on, "
        f"or end it {ending}"
    )


def end_run(run: str) -> str:
    """Return the way to end a run."""
    return f"with `cancel {run}`"
