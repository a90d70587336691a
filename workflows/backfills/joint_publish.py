"""The joint publish of a backfill: one merge publishes all partitions.

The run of each partition publishes to a branch of the backfill. When all partitions are on this branch, it becomes a
quarantine of the backfill. A release of the quarantine audits all partitions together, waits for an approval if one is
required, and merges them into main.
"""

import asyncio
import hashlib
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ChildWorkflowError, FailureError, TerminatedError
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from sluice.causes import Cause
    from sluice.contracts.backfill import BackfillInput, CollectBackfillInput, JointPublish, OpenBackfillInput
    from sluice.contracts.lake_queries import PlanReleaseInput
    from sluice.contracts.publish import DiscardBranchInput
    from sluice.contracts.starting import EndedRun, StartPipelineInput
    from sluice.errors import InputChanged
    from sluice.pipeline.placeholders import values_of_all
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, raise_if_cancelled, root_cause, run_shielded
    from workflows.run.started_runs import cancel_and_wait
    from workflows.search_attributes import LONGEST_SUMMARY

ALL = "all partitions"
"""Name of the run that publishes all partitions, in status and commands."""


class JointPublication:
    """The branch of a backfill, and the run that publishes this branch."""

    def __init__(self, state: JointPublish) -> None:
        self.state = state
        self._calls = ActivityCalls()

    @property
    def child_id(self) -> str:
        """The id of the workflow that starts the run for all partitions."""
        return f"{workflow.info().workflow_id}-all-{workflow.info().run_id[:8]}"

    async def open(self, input: BackfillInput) -> bool:
        """Create the branch of the backfill, if it does not exist; return False if this failed."""
        if self.state.branch:
            return True
        try:
            given = OpenBackfillInput(pipeline=input.name, request=_request_digest(input))
            opened = await self._calls.open_backfill(given)
        except ActivityError as error:
            self._fail(error, "refused")
            return False
        self._change(branch=opened.name, catalog_id=opened.catalog_id)
        raise_if_cancelled()  # an activity that completes during a cancellation does not raise it
        return True

    async def publish(self, input: BackfillInput, partitions: list[str]) -> None:
        """Turn the branch into a quarantine, start the run that publishes it, and wait for its end."""
        self._change(is_under_way=True)
        try:
            await self._publish(input, values_of_all(partitions))
        except FailureError as error:
            self._fail(error, "failed")
            if self.state.ended and self.state.ended.cause == "input_changed":
                # A second start would add rows to the old ones.
                with suppress(ActivityError):
                    await self.discard()
        except asyncio.CancelledError:
            self._change(ended=EndedRun(key=ALL, outcome="cancelled", cause="cancelled"))
            raise
        finally:
            self._change(is_under_way=False)

    async def discard(self) -> None:
        """Delete the branch of a cancelled backfill. A quarantine of its partitions is kept."""
        if self.state.branch and not self.state.quarantine:
            given = DiscardBranchInput(branch=self.state.branch, catalog_id=self.state.catalog_id)
            await self._calls.discard_branch(given)
            self._change(branch="")

    async def _publish(self, input: BackfillInput, values: dict[str, str]) -> None:
        now, info = workflow.now(), workflow.info()
        collected = await self._calls.collect_backfill(
            CollectBackfillInput(
                branch=self.state.branch,
                catalog_id=self.state.catalog_id,
                pipeline=input.pipeline,
                values=values,
                workflow_id=info.workflow_id,
                run_id=info.run_id,
                day=now.date().isoformat(),
                expires=(now + timedelta(seconds=input.keep)).isoformat(),
            )
        )
        if not collected.name:
            await self.discard()
            reason = "main already contains all partitions"
            self._change(ended=EndedRun(key=ALL, outcome="skipped", cause="already_published", reason=reason))
            return
        self._change(quarantine=collected.name)
        raise_if_cancelled()
        plan = await self._calls.plan_joint_release(PlanReleaseInput(run=collected.name, again=input.again))
        raise_if_cancelled()
        given = StartPipelineInput(
            pipeline=input.pipeline,
            starter=f"backfill {input.name}",
            asked_by=input.starter,
            values=values,
            resume=plan.resume,
            input_digest=plan.input_digest,
            key=ALL,
            since=now.isoformat(),
        )
        ended = await self._run_child(given, f"{input.name}: {ALL}"[:LONGEST_SUMMARY])
        self._change(ended=ended)
        if ended.outcome == "cancelled" and workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError  # the wait for the child consumed the cancellation

    async def _run_child(self, given: StartPipelineInput, summary: str) -> EndedRun:
        """Start the run that publishes all partitions, and wait for its end.

        If the child that starts the run is terminated, start it again; the run goes on meanwhile. If the backfill is
        cancelled, cancel the run instead.
        """
        while True:
            try:
                ended: EndedRun = await workflow.execute_child_workflow(
                    "StartPipeline",
                    given,
                    id=self.child_id,
                    result_type=EndedRun,
                    parent_close_policy=ParentClosePolicy.ABANDON,
                    cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                    static_summary=summary,
                )
                return ended
            except ChildWorkflowError as error:
                if not isinstance(error.cause, TerminatedError):
                    raise
                if workflow.cancellation_reason() is not None:
                    ended = await run_shielded(cancel_and_wait(self._calls, self.child_id, given.since))
                    return ended.model_copy(update={"key": ALL})

    def _fail(self, error: FailureError, outcome: str) -> None:
        if is_cancelled(error):
            self._change(ended=EndedRun(key=ALL, outcome="cancelled", cause="cancelled"))
            raise error
        kind, reason = root_cause(error)
        cause: Cause = "input_changed" if kind == InputChanged.__name__ else "error"
        self._change(ended=EndedRun(key=ALL, outcome=outcome, cause=cause, reason=reason[:1000]))

    def _change(self, **fields: Any) -> None:
        self.state = self.state.model_copy(update=fields)


def _request_digest(input: BackfillInput) -> str:
    """Return the digest of a backfill's request. With `again`, the digest is unique."""
    once = workflow.info().run_id if input.again else ""
    stated = f"{input.pipeline.model_dump_json()} {' '.join(input.progress.partitions)} {once}"
    return hashlib.sha256(stated.encode()).hexdigest()[:12]
