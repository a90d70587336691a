"""Lookup of running workflows in Temporal, from the thread of an activity."""

import asyncio
from concurrent.futures import TimeoutError as FutureTimeout  # not the built-in one before Python 3.11
from dataclasses import dataclass

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from lakehouse.quarantine.quarantined_branches import QuarantinedBranch
from sluice.errors import ServiceUnavailable
from sluice.publishing.release import release_workflow_id

_TIMEOUT = 30
"""Time-out of a request to describe a workflow, in seconds."""
_UNKNOWN = (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT)
"""Answers of Temporal for a workflow that does not exist, or has an invalid id."""


@dataclass(frozen=True)
class RunningWorkflows:
    """The lookup of running workflows. Needs Temporal's client and the client's event loop."""

    client: Client
    loop: asyncio.AbstractEventLoop

    def is_running(self, workflow_id: str, run_id: str | None = None) -> bool:
        """Return True if this run of a workflow, or by default its newest run, is running.

        Raises:
            ServiceUnavailable: Temporal does not answer.
        """
        describe = self.client.get_workflow_handle(workflow_id, run_id=run_id).describe()
        future = asyncio.run_coroutine_threadsafe(describe, self.loop)
        try:
            description = future.result(_TIMEOUT)
        except RPCError as error:
            if error.status in _UNKNOWN:
                return False
            raise ServiceUnavailable(
                f"Temporal did not answer whether {workflow_id[:200]} is running: {error}"
            ) from error
        except FutureTimeout as error:
            future.cancel()
            raise ServiceUnavailable(f"Temporal did not answer whether {workflow_id[:200]} is running") from error
        return description.status == WorkflowExecutionStatus.RUNNING

    def release_of(self, quarantined: QuarantinedBranch) -> str:
        """Return the workflow id of the running release or repair of a quarantine, or "" if there is none."""
        if not (quarantined.pipeline and quarantined.quarantined_hash):
            return ""
        workflow_id = release_workflow_id(quarantined.pipeline, quarantined.branch, quarantined.quarantined_hash)
        return workflow_id if self.is_running(workflow_id) else ""
