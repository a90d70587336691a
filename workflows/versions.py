"""The revision of the workflow that a run follows.

The request of the run names the revision, so that a replay takes the same path (ADR 20).
"""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.run_request import REVISION, RunRequest


class UnknownRevision(RuntimeError):
    """Raised when a worker does not support the revision of a run."""


def require_known_revision(request: RunRequest) -> None:
    """Check that this worker supports the revision of a run.

    Raises:
        UnknownRevision: the worker does not support it. This fails the workflow task, but not the run, which waits for
            another worker.
    """
    if request.revision > REVISION:
        raise UnknownRevision(
            f"the run needs revision {request.revision} of the workflow, and this worker supports revisions up to "
            f"{REVISION}: upgrade the worker, and the run continues"
        )
