"""The revision of the workflow that a run follows.

The request names it, so that a replay takes the same path (ADR 20).
"""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.run import REVISION, RunRequest

_LINEAGE = 2
"""The first revision whose runs send OpenLineage events."""
_REGISTRATIONS = 3
"""The first revision whose runs start registrations after their merge."""
_CHECKPOINTS = 4
"""The first revision whose runs end a workflow task by an activity, where earlier ones waited for a timer."""


def require_known_revision(request: RunRequest) -> None:
    """Make sure that this worker knows the revision of a run.

    Raises:
        RuntimeError: it does not. That fails the workflow's task and not the run, which waits for another worker.
    """
    if request.revision > REVISION:
        raise RuntimeError(
            f"the run follows revision {request.revision} of the workflow, and this worker knows {REVISION}: "
            "upgrade the worker; the run goes on from here"
        )


def emits_lineage(request: RunRequest) -> bool:
    """Return whether a run asks for a receiver of OpenLineage events; a run that was started only to check has none."""
    return request.revision >= _LINEAGE and request.publish


def starts_registrations(request: RunRequest) -> bool:
    """Return whether a run starts registrations after its merge."""
    return request.revision >= _REGISTRATIONS


def checkpoints_by_activity(request: RunRequest) -> bool:
    """Return whether a run ends a workflow task by an activity."""
    return request.revision >= _CHECKPOINTS
