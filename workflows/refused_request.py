"""End a workflow whose request this worker refuses, before its first step.

Temporal repeats a failed workflow task for ever. So a run whose pipeline the worker's release refuses would stay
`running`, without a reason that `status` can show. Before its first step a workflow has done nothing, so it fails with
the reason. Later, its state must not be lost: the run waits for a worker that can continue it (ADR 20).
"""

import json
from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.exceptions import ApplicationError
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from sluice.contracts.run_request import REVISION
from sluice.validation_errors import describe_errors
from workflows.failures import REFUSED_REQUEST


class RequestCheckingRunner(SandboxedWorkflowRunner):
    """A sandboxed runner that fails workflows whose request cannot be decoded before their first step."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return the instance of a workflow."""
        return _CheckedInstance(super().create_instance(det), det)


class _CheckedInstance(WorkflowInstance):
    def __init__(self, inner: WorkflowInstance, details: WorkflowInstanceDetails) -> None:
        self._inner = inner
        self._details = details

    def activate(self, activation: WorkflowActivation) -> WorkflowActivationCompletion:
        completion = self._inner.activate(activation)
        if completion.HasField("failed") and self._is_first(activation):
            self._fail_if_refused(completion)
        return completion

    def _is_first(self, activation: WorkflowActivation) -> bool:
        """Return True if the workflow has done nothing yet, and this worker knows its revision."""
        starts = [job.initialize_workflow for job in activation.jobs if job.HasField("initialize_workflow")]
        is_continued = self._details.info.continued_run_id is not None
        return bool(starts) and not activation.is_replaying and not is_continued and not _is_newer(starts[0].arguments)

    def _fail_if_refused(self, completion: WorkflowActivationCompletion) -> None:
        """Replace the failure of the task by a failure of the workflow, if its cause is an invalid request."""
        converter, payloads = self._details.failure_converter_class(), self._details.payload_converter_factory()
        problem = _problem(converter.from_failure(completion.failed.failure, payloads))
        if problem is None:
            return
        refused = WorkflowActivationCompletion(run_id=completion.run_id)
        failure = refused.successful.commands.add().fail_workflow_execution.failure
        reason = (
            f"this release of Sluice refuses the request of the run: {problem}. Run `check` on the pipeline "
            "file, correct it, and start the run again. If the command line is newer than the worker, upgrade the "
            "worker"
        )
        converter.to_failure(ApplicationError(reason, type=REFUSED_REQUEST, non_retryable=True), payloads, failure)
        completion.CopyFrom(refused)

    def get_serialization_context(self, command_info: Any) -> Any:
        return self._inner.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._inner.get_external_store_context(command_info)

    def get_info(self) -> Any:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()


def _is_newer(arguments: Sequence[Payload]) -> bool:
    """Return True if a request names a revision that this worker does not know: it waits for a newer one."""
    try:
        request = json.loads(arguments[0].data) if arguments else None
    except ValueError:
        return False
    revision = request.get("revision") if isinstance(request, dict) else None
    return isinstance(revision, int) and revision > REVISION


def _problem(error: BaseException | None) -> str | None:
    """Return the errors of Pydantic in a chain of causes, without the values of the request; None without any."""
    while error is not None:
        if isinstance(error, ApplicationError) and error.type == "ValidationError":
            return describe_errors(error.message)
        error = error.__cause__
    return None
