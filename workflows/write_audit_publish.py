"""The workflow of a run: write on a branch, audit exactly this write, publish it by one merge or say why not."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import Decision
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.contracts.registration import Registration
    from sluice.contracts.run import RUN_WORKFLOW, STATUS_QUERY, RunResult, RunStatus
    from sluice.contracts.run_request import RunRequest
    from sluice.publishing.retries import WRITE_STAGES, AttemptLimit
    from workflows.activity_calls import ActivityCalls
    from workflows.approval.approval import find_required_approval, take_decision, wait_for_approval
    from workflows.approval.waivers import check_waivers_hold, find_waivers
    from workflows.audit.audit import audit
    from workflows.audit.failed_audit import stop_unless_waivable
    from workflows.failures import RunStopped, run_shielded
    from workflows.lineage.lineage import LineageEvents
    from workflows.publishing.merge_slot import release_merge_slot
    from workflows.publishing.publish import premerge_check, publish
    from workflows.publishing.rebase import resolve_conflict
    from workflows.run.compensation import compensate
    from workflows.run.fencing import fence_attempt
    from workflows.run.finish import finish
    from workflows.run.retries import try_again_after
    from workflows.run.run_state import RunState
    from workflows.run.write import write
    from workflows.search_attributes import RESULT_MEMO
    from workflows.versions import require_known_revision


@workflow.defn(name=RUN_WORKFLOW)
class WriteAuditPublish:
    """One run of a pipeline."""

    @workflow.init
    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._calls = ActivityCalls(request.policy, request.pipeline.name)
        self._state = RunState(request)
        self._lineage = LineageEvents(self._calls, self._state)

    @workflow.run
    async def run(self, request: RunRequest) -> RunResult:
        """Run the steps, compensate if they fail or are stopped, and finish; return or raise the outcome."""
        require_known_revision(request)
        self._lineage.start()
        error: BaseException | None = None
        try:
            await self._write_audit_publish()
        except (Exception, asyncio.CancelledError) as caught:
            error = caught
            await run_shielded(compensate(self._calls, self._state, caught))
        await run_shielded(release_merge_slot(self._calls, self._state))
        await run_shielded(finish(self._calls, self._state, self._lineage))
        result = self._state.result
        if result.outcome == "cancelled":
            workflow.upsert_memo({RESULT_MEMO: result.model_dump(mode="json", by_alias=True)})
            raise CancelledError(result.reason) from error
        if result.outcome == "failed":
            raise ApplicationError(result.reason, result, type="RunFailed", non_retryable=True) from error
        return result

    async def _write_audit_publish(self) -> None:
        """Repeat attempts until one is published.

        An attempt is fenced if its write fails or is lost, or if it meets a conflict with main. After a failed or lost
        write, the next attempt writes on a new branch. After a conflict, the run rebases the write if possible, and
        audits it again.
        """
        limit = AttemptLimit(self._request.pipeline.write.attempts, self._request.policy.wait_timeout)
        has_write = False
        while True:
            try:
                if not has_write:
                    await write(self._calls, self._state)
                    self._lineage.report_write()
                conflicts = self._conflicts_at_write() or await self._audit_and_publish()
            except ActivityError as error:
                branch = self._state.attempt.branch
                if self._state.stage not in WRITE_STAGES or not (branch and branch.can_be_fenced):
                    raise
                await try_again_after(error, limit, self._state, self._fence)
                if self._state.is_published:
                    return  # fencing found that an earlier attempt was published
                has_write = False
                continue
            if not conflicts:
                return
            limit.reset_wait()
            resolution = await resolve_conflict(self._calls, self._state, conflicts)
            if resolution == "published":
                return
            has_write = resolution == "rebased"
            if not has_write:
                await release_merge_slot(self._calls, self._state)

    async def _audit_and_publish(self) -> list[str]:
        """Audit the write, wait for required approvals or waivers, and merge; return conflicts with main."""
        report = await audit(self._calls, self._state)
        if not report.passed:
            failed = stop_unless_waivable(self._state, report)
            await find_waivers(self._calls, self._state, report, failed)
        if not self._request.publish:
            raise RunStopped("checked", "the audit passed, and the run publishes nothing (`--no-publish`)")
        required = await find_required_approval(self._calls, self._state)
        if required.required:
            if conflicts := await premerge_check(self._calls, self._state):
                return conflicts  # people do not decide about a write that cannot be merged
            await release_merge_slot(self._calls, self._state)  # people may take longer than a slot lasts
            await wait_for_approval(self._calls, self._state, required, report)
            check_waivers_hold(self._state, report)
        return await publish(self._calls, self._state, report)

    def _conflicts_at_write(self) -> list[str]:
        """Return the tables that main changed while the run wrote, or none if the run does not publish."""
        written = self._state.attempt.write_result
        return written.conflicts if written and self._request.publish else []

    async def _fence(self, why: str, is_lost: bool = False) -> None:
        if is_lost:
            self._state.record_loss()
        self._state.enter_stage("cleaning up", why)
        await fence_attempt(self._calls, self._state)

    @workflow.signal
    async def approve(self, decision: Decision) -> None:
        """Approve. A decision that does not count appears in the status, with the reason."""
        await take_decision(self._calls, self._state, decision.model_copy(update={"approve": True}))

    @workflow.signal
    async def reject(self, decision: Decision) -> None:
        """Reject. A decision that does not count appears in the status, with the reason."""
        await take_decision(self._calls, self._state, decision.model_copy(update={"approve": False}))

    @workflow.signal
    def merge_slot_free(self, ticket: MergeTicket) -> None:
        """Record that the run has the merge slot of a table."""
        self._state.merge_slot.granted = ticket

    @workflow.signal
    def registration_ended(self, registration: Registration) -> None:
        """Record the end of a registration of the publication."""
        self._state.record_registration(registration)

    @workflow.update
    async def decide(self, decision: Decision) -> Decision:
        """Approve or reject; return the decision as it was recorded.

        Raises:
            ApplicationError: the decision does not count.
        """
        why = await take_decision(self._calls, self._state, decision)
        if why is not None:
            raise ApplicationError(why, type="Refused", non_retryable=True)
        return self._state.decisions[-1]

    @decide.validator
    def _validate_decision(self, decision: Decision) -> None:
        why = self._state.refusal(decision)
        if why is not None:
            raise ApplicationError(why, type="Refused", non_retryable=True)

    @workflow.query(name=STATUS_QUERY)
    def status(self) -> RunStatus:
        """Return the stage, the events and the result so far."""
        return self._state.status()
