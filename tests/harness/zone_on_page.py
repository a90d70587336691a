"""A landing zone in memory, with its page: the batches and their refusals are those of the workflow."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from sluice.arrivals.held_batches import HeldBatches
from sluice.contracts.arrivals import Batch, BatchRef, ListArrivalsResult, ZoneStatus
from sluice.contracts.starting import PipelineText
from sluice.contracts.zone_requests import BatchCommand, SplitBatch
from tests.harness.lake_client import LakeClient, polled_by


class ZoneClient(LakeClient):
    """A client of Temporal with the landing zone of the pipeline `p`, which keeps two batches out."""

    namespace = "default"

    def __init__(self, write: str = "mode: append") -> None:
        super().__init__({"list_arrivals": lambda _: ListArrivalsResult(files=[], counts={})})
        text = f"name: p\nwrite: {{source: {{format: csv, loaded: skip}}, {write}}}\narrival: {{from: /in}}\n"
        self.text = PipelineText(name="p.yml", text=f"{text}tables: {{t.x: {{partition_by: [day]}}}}\n", folder="/")
        self.held = HeldBatches([kept_out("b1", files=4), kept_out("b2", files=1)])
        self.requests: list[BatchCommand | SplitBatch] = []
        """Requests that the zone accepted."""
        self.workflow_service = polled_by("1@host")

    def states(self) -> dict[str, str]:
        return {each.ref.id: each.state for each in self.held.all}

    def get_workflow_handle_for(self, _: object, workflow_id: str) -> SimpleNamespace:
        async def describe() -> SimpleNamespace:
            return SimpleNamespace(
                status=WorkflowExecutionStatus.RUNNING,
                close_time=None,
                raw_description=DescribeWorkflowExecutionResponse(),
            )

        async def query(_: object) -> ZoneStatus:
            return ZoneStatus(
                name="p", pipeline=self.text, batches=self.held.all, paused="", problem="", counts={},
                latest_arrival=None, next_look="",
            )  # fmt: skip

        return SimpleNamespace(id=workflow_id, describe=describe, query=query, execute_update=self._update)

    async def _update(self, _: object, request: BatchCommand | SplitBatch) -> Batch | Sequence[Batch]:
        if problem := self.held.problem_of_request(request, in_order=True):
            raise WorkflowUpdateFailedError(ApplicationError(problem, type="NoDecision"))
        self.requests.append(request)
        if isinstance(request, BatchCommand):
            return self.held.decide(request)[0]
        return self.held.split(request, [_ref(f"{request.batch}{half}", files=2) for half in "xy"])


def kept_out(id: str, files: int, **fields: Any) -> Batch:
    """Return a batch whose run was kept out."""
    shown = {"tries": 1, "workflow_id": f"p-{id}", "run_id": f"run-of-{id}", "outcome": "quarantined"}
    return Batch(ref=_ref(id, files), state="kept out", reason="the audit failed", **{**shown, **fields})


def _ref(id: str, files: int) -> BatchRef:
    return BatchRef(id=id, location="", files=files, bytes=1)
