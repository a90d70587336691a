"""The workflow: write on a branch, audit exactly that, publish it by one merge, or keep it out and say why."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import Decision, Ruled, Ruling
    from sluice.audit.bad_rows import divisible
    from sluice.audit.verdicts import AuditReport
    from sluice.contracts.activity_inputs import (
        PublishOrder,
    )
    from sluice.contracts.merge_queue import Turn
    from sluice.contracts.run import RunRequest, RunResult, RunStatus
    from sluice.publishing.certificate import certificate, merge_message
    from sluice.publishing.outcomes import stopped_by
    from workflows.activity_calls import Acts
    from workflows.failures import Stopped, heed_cancellation, may_pass, never_began, to_the_end, words_of
    from workflows.metrics import attempt_fenced
    from workflows.run_state import RunState
    from workflows.steps.approval import decided, decision
    from workflows.steps.audit import audit, divide
    from workflows.steps.compensation import close, compensate
    from workflows.steps.rebase import foreseen, give_back_turn, rebase
    from workflows.steps.write import begin
    from workflows.versions import refuse_newer

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
        self._acts = Acts(request)
        self._state = RunState(request)

    @workflow.run
    async def run(self, request: RunRequest) -> RunResult:
        """Tell the story; compensate if it breaks off; say how it ended, whatever happens meanwhile."""
        refuse_newer(request)
        error: BaseException | None = None
        try:
            await self._story()
        except (Exception, asyncio.CancelledError) as caught:
            error = caught
            await to_the_end(compensate(self._acts, self._state, caught))
        await to_the_end(give_back_turn(self._acts, self._state))
        await to_the_end(close(self._acts, self._state))
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
                collided = self._state.written.conflicts if self._state.written else []
                collided = collided or await self._audited_and_published()
            except ActivityError as error:
                if never_began(self._request, error):
                    lost += 1
                else:
                    failures += 1
                again = self._state.stage in _WRITING and may_pass(error)
                if failures >= self._request.pipeline.write.attempts or lost > _LOST or not again:
                    raise
                await self._fence(f"attempt {self._state.attempt} failed: {words_of(error)[1]}")
                is_written = False
                continue
            if not collided:
                return
            is_written = await rebase(self._acts, self._state, collided)
            if not is_written:
                await give_back_turn(self._acts, self._state)
                tables = ", ".join(collided)
                await self._fence(f"main changed {tables} meanwhile: writing again from its new head")

    async def _audited_and_published(self) -> list[str]:
        """Audit what was written, ask who is to be asked, and merge; return what main had changed meanwhile."""
        report = await audit(self._acts, self._state)
        if failing := divisible(report.checks, self._request.pipeline.tables):
            await divide(self._acts, self._state, failing)
            report = await audit(self._acts, self._state)
        if not report.passed:
            raise Stopped("audit", stopped_by(report.checks))
        if self._request.pipeline.approval:
            if collided := await foreseen(self._acts, self._state):
                return collided  # nobody should be asked about what cannot be merged
            await decision(self._acts, self._state, self._request.pipeline.approval)
        return await self._publish(report)

    async def _publish(self, report: AuditReport) -> list[str]:
        """Merge the audited hash; return the keys that main had changed meanwhile, if that kept it out."""
        state = self._state
        assert state.branch and state.written
        state.enter("publishing", f"{state.written.head[:12]} into main")
        state.publishing = True
        order = PublishOrder(
            origin=state.origin,
            branch=state.branch,
            head=state.written.head,
            message=merge_message(state.origin, list(state.written.tables)),
            properties=certificate(self._request, state.origin, report, state.rulings),
            author=self._request.starter,
            looks_at=state.looks_at,
            required=state.approval.required if state.approval else 0,
            approvals=state.rulings,
        )
        publication = await self._acts.publish_branch(order)
        if publication.merged:
            state.published(publication)
            return []
        state.publishing = False
        heed_cancellation()
        return publication.conflicts

    async def _fence(self, why: str) -> None:
        """Delete the attempt's branch, so that whoever still writes on it fails, before the next one begins."""
        assert self._state.branch
        self._state.enter("compensating", why)
        await self._acts.discard_branch(self._state.branch.name)
        attempt_fenced(self._request.pipeline.name)
        heed_cancellation()

    @workflow.signal
    async def approve(self, decision: Decision) -> None:
        """Say yes. A yes that does not count is noted in the status, with the reason."""
        await decided(self._acts, self._state, decision, approve=True)

    @workflow.signal
    async def reject(self, decision: Decision) -> None:
        """Say no. A no that does not count is noted in the status, with the reason."""
        await decided(self._acts, self._state, decision, approve=False)

    @workflow.signal
    def your_turn(self, turn: Turn) -> None:
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
