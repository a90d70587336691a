"""The header of a run's activities that names the branch it publishes to, if that is not main."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle, unsafe

with unsafe.imports_passed_through():
    from sluice.contracts.references import TARGET_HEADER
    from sluice.contracts.run_request import RunRequest


class TargetHeader(Interceptor):
    """Interceptor that adds the header to the activities of a run whose request names a target."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """Return the class that intercepts workflows."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    _outbound: "_Outbound"

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self._outbound = _Outbound(outbound)
        super().init(self._outbound)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        request = input.args[0] if input.args else None
        if isinstance(request, RunRequest):
            self._outbound.target = request.target
        return await super().execute_workflow(input)


class _Outbound(WorkflowOutboundInterceptor):
    target = ""

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:
        return super().start_activity(replace(input, headers=self._headers(input.headers)))

    def start_local_activity(self, input: StartLocalActivityInput) -> ActivityHandle[Any]:
        return super().start_local_activity(replace(input, headers=self._headers(input.headers)))

    def _headers(self, headers: Mapping[str, Payload]) -> Mapping[str, Payload]:
        return {**headers, TARGET_HEADER: Payload(data=self.target.encode())} if self.target else headers
