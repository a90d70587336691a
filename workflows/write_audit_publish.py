"""The workflow: write on a branch, audit exactly that, publish it by one merge, or keep it out and say why."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import Decision, Ruled, Ruling
    from sluice.audit.bad_rows import quarantinable_checks
    from sluice.audit.verdicts import AuditReport
    from sluice.contracts.activity_inputs import (
        PublishBranchInput,
    )
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.contracts.run import RunRequest, RunResult, RunStatus
    from sluice.publishing.certificate import certificate, merge_message
    from sluice.publishing.outcomes import describe_blocking_checks
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import (
        RunStopped,
        is_retryable,
        raise_if_cancelled,
        root_cause,
        run_shielded,
        was_never_started,
    )
    from workflows.metrics import count_fence
    from workflows.run_state import RunState
    from workflows.steps.approval import decided, decision
    from workflows.steps.audit import audit, divide
    from workflows.steps.compensation import close, compensate
    from workflows.steps.rebase import premerge_check, rebase, release_merge_slot
    from workflows.steps.write import begin
    from workflows.versions import require_known_revision

RESULT_MEMO = "sluice.result"
"""Where the result of a cancelled run is found: such a run has none in Temporal's sense."""
_WRITING = ("writing", "verifying", "dividing")
"""The stages in which an attempt that breaks off may be made again."""
_LOST = 10
"""So many attempts may be handed to workers that are gone, and do not count: a paused one still draws work."""


@workflow.defn(name="WriteAuditPublish")
class WriteAuditPublish:
    """One run of a pipeline."""

    @workflow.init
    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._acts = ActivityCalls(request)
        self._state = RunState(request)

    @workflow.run
    async def run(self, request: RunRequest) -> RunResult:
        """Tell the story; compensate if it breaks off; say how it ended, whatever happens meanwhile."""
        require_known_revision(request)
        error: BaseException | None = None
        try:
            await self._story()
        except (Exception, asyncio.CancelledError) as caught:
            error = caught
            await run_shielded(compensate(self._acts, self._state, caught))
        await run_shielded(release_merge_slot(self._acts, self._state))
        await run_shielded(close(self._acts, self._state))
        result = self._state.result
        if result.outcome == "cancelled":
            workflow.upsert_memo({RESULT_MEMO: result.model_dump(mode="json", by_alias=True)})
            raise CancelledError(result.reason) from error
        if result.outcome == "failed":
            raise ApplicationError(result.reason, result, type="RunFailed", non_retryable=True) from error
        return result

    async def _story(self) -> None:
        failures = lost = 0
        is_written = False
        while True:
            try:
                if not is_written:
                    await begin(self._acts, self._state)
                record_conflict = self._state.write_result.conflicts if self._state.write_result else []
                record_conflict = record_conflict or await self._audited_and_published()
            except ActivityError as error:
                if was_never_started(error):
                    lost += 1
                else:
                    failures += 1
                again = self._state.stage in _WRITING and is_retryable(error)
                if failures >= self._request.pipeline.write.attempts or lost > _LOST or not again:
                    raise
                await self._fence(f"attempt {self._state.attempt} failed: {root_cause(error)[1]}")
                is_written = False
                continue
            if not record_conflict:
                return
            is_written = await rebase(self._acts, self._state, record_conflict)
            if not is_written:
                await release_merge_slot(self._acts, self._state)
                tables = ", ".join(record_conflict)
                await self._fence(f"main changed {tables} meanwhile: writing again from its new head")

    async def _audited_and_published(self) -> list[str]:
        """Audit what was written, ask who is to be asked, and merge; return what main had changed meanwhile."""
        report = await audit(self._acts, self._state)
        if failing := quarantinable_checks(report.checks, self._request.pipeline.tables):
            await divide(self._acts, self._state, failing)
            report = await audit(self._acts, self._state)
        if not report.passed:
            raise RunStopped("audit", describe_blocking_checks(report.checks))
        if self._request.pipeline.approval:
            if record_conflict := await premerge_check(self._acts, self._state):
                return record_conflict  # nobody should be asked about what cannot be merged
            await decision(self._acts, self._state, self._request.pipeline.approval)
        return await self._publish(report)

    async def _publish(self, report: AuditReport) -> list[str]:
        """Merge the audited hash; return the keys that main had changed meanwhile, if that kept it out."""
        state = self._state
        assert state.branch and state.write_result
        state.enter("publishing", f"{state.write_result.head[:12]} into main")
        state.publishing = True
        input = PublishBranchInput(
            run_ref=state.run_ref,
            branch=state.branch,
            head=state.write_result.head,
            message=merge_message(state.run_ref, list(state.write_result.tables)),
            properties=certificate(self._request, state.run_ref, report, state.rulings),
            author=self._request.starter,
            referenced_tables=state.referenced_tables,
            required=state.approval.required if state.approval else 0,
            approvals=state.rulings,
        )
        publication = await self._acts.publish_branch(input)
        if publication.merged:
            state.published(publication)
            return []
        state.publishing = False
        raise_if_cancelled()
        return publication.conflicts

    async def _fence(self, why: str) -> None:
        """Delete the attempt's branch, so that whoever still writes on it fails, before the next one begins."""
        assert self._state.branch
        self._state.enter("compensating", why)
        await self._acts.discard_branch(self._state.branch.name)
        count_fence(self._request.pipeline.name)
        raise_if_cancelled()

    @workflow.signal
    async def approve(self, decision: Decision) -> None:
        """Say yes. A yes that does not count is noted in the status, with the reason."""
        await decided(self._acts, self._state, decision, approve=True)

    @workflow.signal
    async def reject(self, decision: Decision) -> None:
        """Say no. A no that does not count is noted in the status, with the reason."""
        await decided(self._acts, self._state, decision, approve=False)

    @workflow.signal
    def your_turn(self, turn: MergeTicket) -> None:
        """Hear that the run's turn at a table has come."""
        self._state.turn_came = turn

    @workflow.update
    async def decide(self, ruling: Ruling) -> Ruled:
        """Say yes or no, and get an answer."""
        why = await decided(self._acts, self._state, ruling, approve=ruling.approve)
        if why is not None:
            raise ApplicationError(why, type="Refused", non_retryable=True)
        return self._state.rulings[-1]

    @decide.validator
    def _check_ruling(self, ruling: Ruling) -> None:
        why = self._state.refuse(ruling)
        if why is not None:
            raise ApplicationError(why, type="Refused", non_retryable=True)

    @workflow.query
    def status(self) -> RunStatus:
        """Say how the run stands."""
        return self._state.status()
