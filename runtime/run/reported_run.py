"""A run as programs read it: its result, or what is known of it so far, with its stage."""

from temporalio.client import Client

from runtime.missing_worker import end_run, no_worker
from runtime.registration.registrations import with_registrations_now
from runtime.run.find_run import RunLookup, query_status, read_result
from runtime.stuck_workflow import refuse_if_stuck
from sluice.contracts.run import ReportedRun, RunResult, RunStatus


async def read_ended(client: Client, lookup: RunLookup) -> RunResult:
    """Return the result of a run that has ended, with the present state of its registrations."""
    result = await read_result(client, lookup.description)
    assert result is not None
    return await with_registrations_now(client, result)


async def read_status(lookup: RunLookup) -> RunStatus:
    """Return the status of a run that has not ended.

    Raises:
        ServiceUnavailable: no worker answers, or the worker cannot continue the run.
    """
    status = await answered_status(lookup)
    if status is None:
        raise no_worker(f"for {lookup.handle.id}")
    return status


async def answered_status(lookup: RunLookup) -> RunStatus | None:
    """Return the status of a run that has not ended; None if no worker answers.

    Raises:
        ServiceUnavailable: the worker cannot continue the run.
    """
    await refuse_if_stuck(lookup.handle, lookup.description, end_run(lookup.handle.id))  # it would not answer a query
    return await query_status(lookup.handle)


async def report_run(client: Client, lookup: RunLookup) -> ReportedRun:
    """Return a run as `status --json` prints it.

    Raises:
        ServiceUnavailable: the run has not ended, and no worker answers.
    """
    if lookup.ended:
        result = await read_ended(client, lookup)
        return ReportedRun(**result.model_dump(), stage="ended")
    status = await read_status(lookup)
    return ReportedRun(
        **status.result.model_dump(), stage=status.stage, deadline=status.deadline, audit_digest=status.audit_digest
    )
