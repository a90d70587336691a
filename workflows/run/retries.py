"""Decide what follows a failed try of a write or a scan: another try, or the end of the run."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.errors import error_class
    from sluice.publishing.retries import NO_WORKER, AttemptFailure, AttemptLimit
    from workflows.failures import RunStopped, attempt_failure, raise_if_cancelled
    from workflows.run.run_state import RunState


async def try_again_after(
    error: ActivityError, limit: AttemptLimit, state: RunState, clean_up: Callable[[str, bool], Awaitable[None]]
) -> None:
    """Wait until another try may start, or raise if there is none.

    Args:
        clean_up: called before the next try, with the reason, and True if the failed try was lost.

    Raises:
        ActivityError: the job failed for good.
        RunStopped: tries were lost with workers and services for too long.
    """
    failure = attempt_failure(error)
    again = limit.after(failure, workflow.now(), workflow.info().get_current_history_size())
    if again is None:
        if failure.kind == NO_WORKER:
            raise RunStopped("error", failure.message) from error
        if failure.is_retryable and failure.blame != "job":
            raise RunStopped(error_class(failure.kind).cause, _lost_for_too_long(failure, limit)) from error
        raise error
    state.runs_apart = state.runs_apart or failure.blame == "shared server"
    what = f"{state.stage} in attempt {state.attempt.number}"
    if again.is_counted:
        await clean_up(f"{what} failed: {failure.message}", False)
        return
    await clean_up(f"{what} was lost and does not count: {failure.message}. Retry in {again.delay:g} s", True)
    raise_if_cancelled()
    await workflow.sleep(again.delay, summary="before the next try: the last one was lost with a worker or a service")


def _lost_for_too_long(failure: AttemptFailure, limit: AttemptLimit) -> str:
    limits = f"for longer than {timedelta(seconds=limit.wait)}, or so many that the history of the run is full"
    return f"{limit.lost} tries were lost with their workers or services, {limits}: {failure.message}"
