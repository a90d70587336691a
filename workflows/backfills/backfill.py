"""The workflow of a backfill: the runs of one pipeline over many partitions, a few at a time.

Each partition is a child `StartPipeline`, which reports the end of its run by a signal. The children outlive this
workflow: they go on when it continues as new, or is terminated and started again. If a child may have ended without a
report, the workflow starts it again under the same id. This has no effect on a child that is running. Otherwise the new
child's run loads what main does not contain yet.
"""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowCancellationType, ChildWorkflowHandle, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from sluice.backfills.progress import BackfillProgress
    from sluice.backfills.requests import problem_of_addition, problem_of_change, problem_of_edit
    from sluice.contracts.arrival_runs import WorkflowIds
    from sluice.contracts.backfill import (
        BACKFILL_WORKFLOW,
        AddPartitions,
        BackfillChange,
        BackfillInput,
        BackfillStatus,
    )
    from sluice.contracts.starting import RUN_ENDED_SIGNAL, EndedRun, StartPipelineInput
    from sluice.errors import InvalidPipeline
    from sluice.pipeline.placeholders import partition_values
    from sluice.presentation.start_details import backfill_details
    from workflows.activity_calls import ActivityCalls
    from workflows.backfills.joint_publish import ALL, JointPublication
    from workflows.failures import is_cancelled, raise_if_cancelled, refusal_of, run_shielded
    from workflows.run.started_runs import cancel_and_wait
    from workflows.search_attributes import LONGEST_SUMMARY

_CANCEL_AGAIN = timedelta(minutes=10)
"""Maximum wait for reports of cancelled children. Then the workflow asks Temporal which ended, and cancels again."""


@workflow.defn(name=BACKFILL_WORKFLOW)
class Backfill:
    """The backfill of one pipeline."""

    @workflow.init
    def __init__(self, input: BackfillInput) -> None:
        self._input = input
        self._progress = BackfillProgress(input.progress)
        self._joint = JointPublication(input.together) if input.together else None
        """The joint publish, if partitions are published together."""
        self._calls = ActivityCalls()
        self._started = 0
        self._watched: dict[str, ChildWorkflowHandle[Any, Any]] = {}
        """The children that this run of the workflow started, by partition. The workflow notices their end."""
        self._unknown: set[str] = set()
        """The partitions whose child ended without a report, or has not reported for a long time."""
        self._ask_at = workflow.now() + timedelta(seconds=input.ask_again)

    @workflow.run
    async def run(self, input: BackfillInput) -> BackfillStatus:
        """Start partitions while the window has room, until all have ended."""
        try:
            if self._joint and not await self._joint.open(self._input):
                self._progress.cancel()
            while not self._is_over:
                await self._start_children()
                if self._should_continue_as_new():
                    await workflow.wait_condition(workflow.all_handlers_finished)
                    workflow.continue_as_new(self._continued())
                if self._joint:
                    self._progress.pause_if_stuck()
                await self._wait()
            if self._joint and not self._joint.state.ended:
                await self._joint.publish(self._input, self._progress.state.partitions)
        except (FailureError, asyncio.CancelledError) as error:
            if is_cancelled(error):
                await run_shielded(self._cancel())
            raise
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._show()
        return self.status()

    @workflow.signal(name=RUN_ENDED_SIGNAL)
    def run_ended(self, ended: EndedRun) -> None:
        """Record the end of the run of a partition, if the child belongs to this backfill."""
        if ended.started_by == self._child_id(ended.key):
            self._progress.ended(ended)
            self._show()

    @workflow.query
    def status(self) -> BackfillStatus:
        """Return the state of the backfill."""
        progress = self._progress
        return BackfillStatus(
            name=self._input.name,
            starter=self._input.starter,
            pipeline=self._input.pipeline.name,
            children=self._children,
            progress=progress.state,
            together=self._joint.state if self._joint else None,
        )

    @property
    def _children(self) -> dict[str, str]:
        """The ids of the child workflows that are under way, by partition."""
        if self._joint and self._joint.state.is_under_way:
            return {ALL: self._joint.child_id}
        return {name: self._child_id(name) for name in self._progress.running}

    @property
    def _is_over(self) -> bool:
        """True if no partition is left to run. For a joint publish: if all are on its branch, and it may be merged."""
        if self._joint is None or self._joint.state.ended:
            return self._progress.has_ended
        return self._progress.is_complete and not self._progress.paused

    @workflow.update
    def add(self, added: AddPartitions) -> BackfillStatus:
        """Add partitions, put those that are not done or that main may lack back to waiting, and resume.

        While nothing runs, the request may change the text of the pipeline, for example to repair a check or a path.
        """
        self._refuse_if_ending()
        if problem := problem_of_addition(self._input, self._progress, added):
            raise _refused(problem)
        try:
            asked_by = added.starter if added.starter != self._input.starter else ""
            self._progress.add(added.partitions, asked_by, recheck=added.recheck)
        except InvalidPipeline as error:
            raise _refused(str(error)) from error
        if added.pipeline != self._input.pipeline:  # the new starter answers for all further runs
            self._input = self._input.model_copy(update={"pipeline": added.pipeline, "starter": added.starter})
            self._progress.forget_askers()
        return self.status()

    @add.validator
    def _refuse_edit(self, added: AddPartitions) -> None:
        """Refuse the update before it is part of the history: an old history may have one that this rule refuses."""
        if problem := problem_of_edit(self._input, self._progress, added):
            raise _refused(problem)

    @workflow.update
    def change(self, change: BackfillChange) -> BackfillStatus:
        """Pause, resume, retry the partitions that are not on main, or change the window."""
        self._refuse_if_ending()
        if problem := problem_of_change(self._progress, change):
            raise _refused(problem)
        changes: dict[str, Callable[[], None]] = {
            "pause": lambda: self._progress.pause(_why_paused(change, self._progress.paused)),
            "resume": self._progress.resume,
            "retry": self._progress.retry,
            "window": lambda: self._progress.set_window(change.window or 1),
        }
        changes[change.action]()
        return self.status()

    async def _start_children(self) -> None:
        """Start children of unknown state again, and start as many partitions as the window has room for."""
        for partition in [each for each in self._progress.running if each in self._unknown]:
            await self._start(partition)
        self._unknown.clear()
        while not self._is_full() and (name := self._progress.next_partition()) is not None:
            self._progress.started(name, workflow.now().isoformat())
            self._started += 1
            await self._start(name)

    async def _start(self, partition: str) -> None:
        """Start the child of a partition, unless it is running already."""
        self._watched.pop(partition, None)
        given = StartPipelineInput(
            pipeline=self._input.pipeline,
            starter=f"backfill {self._input.name}",
            asked_by=self._progress.state.askers.get(partition, self._input.starter),
            values=partition_values(partition),
            target=self._target,
            again=self._input.again,
            over_younger=self._input.over_younger,
            way="backfill together" if self._joint else "backfill each",
            in_order=self._progress.state.in_order,
            key=partition,
            report_to=workflow.info().workflow_id,
            since=self._progress.asked_at(partition),
        )
        start = workflow.start_child_workflow(
            "StartPipeline",
            given,
            id=self._child_id(partition),
            parent_close_policy=ParentClosePolicy.ABANDON,
            cancellation_type=ChildWorkflowCancellationType.ABANDON,
            static_summary=f"{self._input.name}: {partition}"[:LONGEST_SUMMARY],
        )
        try:
            child = await run_shielded(start)  # else a cancellation would miss the new child
        except WorkflowAlreadyStartedError:  # started by an earlier run of the backfill; it reports to the same id
            pass
        else:
            self._watched[partition] = child
            child.add_done_callback(lambda done: self._child_ended(partition, done))
        raise_if_cancelled()

    def _child_ended(self, partition: str, done: "asyncio.Task[Any]") -> None:
        """Mark a child for another start if it ended without a report, for example because it was terminated.

        A child that the worker refuses ends its partition: the worker would refuse each further start, too.
        The end of an earlier child of the partition is ignored. It normally arrives before the update that begins the
        partition again, but may arrive together with it after a change of workers.
        """
        refusal = "" if done.cancelled() else refusal_of(done.exception())
        if self._watched.get(partition) is not done:
            return
        del self._watched[partition]
        if refusal:
            self._progress.ended(EndedRun(key=partition, outcome="refused", cause="invalid", reason=refusal[:1000]))
            self._show()
        elif self._progress.is_running(partition):
            self._unknown.add(partition)

    @property
    def _target(self) -> str:
        """The branch that partitions publish to; empty for main."""
        return self._joint.state.branch if self._joint else ""

    def _child_id(self, partition: str) -> str:
        """Return the id of a partition's child. Another pipeline text, `again` or target gives another id."""
        stated = f"{self._input.pipeline.model_dump_json()} {self._input.again} {self._target}"
        digest = hashlib.sha256(stated.encode()).hexdigest()[:8]
        return f"{workflow.info().workflow_id}-{partition}-{digest}"

    async def _wait(self) -> None:
        """Wait until there is work. From time to time, mark children of earlier workflow runs as unknown."""
        self._show()
        unseen = set(self._progress.running) - self._watched.keys()
        left = max(self._ask_at - workflow.now(), timedelta(seconds=0)) if unseen else None
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(self._has_work, timeout=left)
            return
        self._unknown |= set(self._progress.running) - self._watched.keys()
        self._ask_at = workflow.now() + timedelta(seconds=self._input.ask_again)

    def _show(self) -> None:
        """Update the details of the backfill in the Temporal Web UI."""
        together = self._joint.state if self._joint else None
        workflow.set_current_details(backfill_details(self._progress.state, together))

    def _has_work(self) -> bool:
        progress = self._progress
        to_start = progress.next_partition() is not None
        if self._joint and progress.is_stuck and not progress.paused:
            return True
        return self._is_over or bool(self._unknown) or to_start or self._should_continue_as_new()

    def _is_full(self) -> bool:
        """Return True if the history of this run of the workflow is so long that it should continue as new."""
        return self._started >= self._input.starts_per_run or workflow.info().is_continue_as_new_suggested()

    def _should_continue_as_new(self) -> bool:
        return self._is_full() and not self._progress.has_ended

    def _continued(self) -> BackfillInput:
        together = self._joint.state if self._joint else None
        return self._input.model_copy(update={"progress": self._progress.state, "together": together})

    def _refuse_if_ending(self) -> None:
        if workflow.cancellation_reason() is not None:
            raise _refused("the backfill was cancelled: start it again when its runs have ended")
        if self._joint and self._joint.state.is_under_way:
            raise _refused("all partitions of the backfill are being published: wait until that run has ended")

    async def _cancel(self) -> None:
        """Cancel the waiting and running partitions, and wait for the reports of the running ones."""
        self._progress.cancel()
        while not self._progress.has_ended:
            self._unknown.clear()
            await self._cancel_children()
            with suppress(asyncio.TimeoutError):
                await workflow.wait_condition(
                    lambda: self._progress.has_ended or bool(self._unknown), timeout=_CANCEL_AGAIN
                )
        if self._joint:
            await self._joint.discard()

    async def _cancel_children(self) -> None:
        """Cancel the children of running partitions, or the runs of children that were terminated."""
        children = {self._child_id(name): name for name in self._progress.running}
        ended: list[str] = []
        with suppress(ActivityError):  # without an answer, at least the running ones are cancelled
            ended = (await self._calls.find_ended_workflows(WorkflowIds(ids=list(children)))).ids
        await asyncio.gather(*(self._cancel_child(name, id, id in ended) for id, name in children.items()))

    async def _cancel_child(self, partition: str, child: str, has_ended: bool) -> None:
        """Cancel a child, which then reports. If it has ended, cancel its runs and record how they ended."""
        if not has_ended:
            with suppress(FailureError):  # the child has ended meanwhile
                await workflow.get_external_workflow_handle(child).cancel()
            return
        with suppress(ActivityError):  # without an answer, the next round tries again
            ended = await cancel_and_wait(self._calls, child, self._progress.asked_at(partition))
            self._progress.ended(ended.model_copy(update={"key": partition}))


def _why_paused(change: BackfillChange, before: str) -> str:
    """Return the reason for a pause. A pause without a reason keeps that of an earlier one."""
    if before and not change.reason:
        return before
    return f"by {change.by}" + (f": {change.reason}" if change.reason else "")


def _refused(message: str) -> ApplicationError:
    return ApplicationError(message, type="InvalidPipeline", non_retryable=True)
