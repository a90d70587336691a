"""The workflow: write on a branch, audit exactly that, publish it by one merge, or keep it out and say why."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

with workflow.unsafe.imports_passed_through():
    from sluice.approval import Decision, Ruled, Ruling
    from sluice.certificate import certificate, merge_message
    from sluice.division import divisible
    from sluice.durations import spoken
    from sluice.endings import Ending, ending, stopped_by
    from sluice.orders import (
        OpenOrder,
        PublishOrder,
        VerifyOrder,
        WriteOrder,
    )
    from sluice.pipeline import Approval
    from sluice.run import Notice, RecordOrder, RunRequest, RunResult, RunStatus
    from sluice.verdicts import AuditReport
    from workflows.acts import Acts
    from workflows.attributes import OUTCOME
    from workflows.audit import audit, divide
    from workflows.breaks import Stopped, explained, heed_cancellation, is_cancelled, may_pass, to_the_end, words_of
    from workflows.state import RunState

RESULT_MEMO = "sluice.result"
"""Where the result of a cancelled run is found: such a run has none in Temporal's sense."""
_WRITING = ("writing", "verifying", "dividing")
"""The stages in which an attempt that breaks off may be made again."""
_RECORDED = "record-run"
"""Runs that began before there was a ledger end without it."""
_COMMIT_TIMEOUT = timedelta(seconds=5)
"""How long Nessie works on a commit at most: a merge in flight is decided after it."""


@workflow.defn(name="WriteAuditPublish")
class WriteAuditPublish:
    """One run of a pipeline."""

    @workflow.init
    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._acts = Acts(request.policy)
        self._state = RunState(request)

    @workflow.run
    async def run(self, request: RunRequest) -> RunResult:
        """Tell the story; compensate if it breaks off; say how it ended, whatever happens meanwhile."""
        error: BaseException | None = None
        try:
            await self._story()
        except (Exception, asyncio.CancelledError) as caught:
            error = caught
            await to_the_end(self._compensate(caught))
        await to_the_end(self._close())
        result = self._state.result
        if result.outcome == "cancelled":
            workflow.upsert_memo({RESULT_MEMO: result.model_dump(mode="json", by_alias=True)})
            raise CancelledError(result.reason) from error
        if result.outcome == "failed":
            raise ApplicationError(result.reason, result, type="RunFailed", non_retryable=True) from error
        return result

    async def _story(self) -> None:
        failures = conflicts = 0
        while True:
            await self._open()
            try:
                await self._write()
                report = await audit(self._acts, self._state)
                if failing := divisible(report.checks, self._request.pipeline.tables):
                    await divide(self._acts, self._state, failing)
                    report = await audit(self._acts, self._state)
            except ActivityError as error:
                failures += 1
                again = self._state.stage in _WRITING and may_pass(error)
                if failures >= self._request.pipeline.write.attempts or not again:
                    raise
                await self._fence(f"attempt {self._state.attempt} failed: {words_of(error)[1]}")
                continue
            if not report.passed:
                raise Stopped("audit", stopped_by(report.checks))
            if self._request.pipeline.approval:
                await self._decision(self._request.pipeline.approval)
            collided = await self._publish(report)
            if not collided:
                return
            conflicts += 1
            if conflicts > self._request.policy.conflicts:
                raise Stopped("error", f"main changed {', '.join(collided)} each time before the merge")
            await self._fence(f"main changed {', '.join(collided)} meanwhile: writing again from its new head")

    async def _open(self) -> None:
        state, pipeline = self._state, self._request.pipeline
        state.begin_attempt()
        state.enter("opening", f"attempt {state.attempt}")
        keeps_columns = pipeline.write.built_in and pipeline.write.mode != "sql"
        order = OpenOrder(
            origin=state.origin,
            tables=pipeline.tables,
            keeps_columns=keeps_columns,
            input_digest=self._request.input.digest,
            again=self._request.again,
            catalogue=state.catalogue,
        )
        state.opened(await self._acts.open_branch(order))
        heed_cancellation()

    async def _write(self) -> None:
        state, pipeline = self._state, self._request.pipeline
        assert state.branch
        state.enter("writing", state.branch.name)
        order = WriteOrder(
            origin=state.origin,
            branch=state.branch.name,
            write=pipeline.write,
            tables=pipeline.tables,
            input_digest=self._request.input.digest,
            folder=self._request.folder,
        )
        job = await self._acts.write_table(order)
        heed_cancellation()
        state.enter("verifying")
        verify = VerifyOrder(
            origin=state.origin,
            branch=state.branch,
            write=pipeline.write,
            tables=list(pipeline.tables),
            job=job,
        )
        state.found(await self._acts.verify_write(verify))
        heed_cancellation()

    async def _decision(self, approval: Approval) -> None:
        """Wait for people, durably. No answer in time means no."""
        state = self._state
        state.await_decisions(workflow.now() + timedelta(seconds=approval.timeout))
        state.enter("waiting for approval", f"until {state.deadline:%Y-%m-%d %H:%M} UTC")
        assert state.deadline
        await self._notify(state.deadline.isoformat())
        left = state.deadline - workflow.now()
        try:
            await workflow.wait_condition(
                lambda: state.settled() is not None,
                timeout=max(left, timedelta()),
                timeout_summary=f"approval by {approval.required}, for {spoken(approval.timeout)}",
            )
        except asyncio.TimeoutError:
            if state.approval:
                state.approval = state.approval.model_copy(update={"expired": True})
            state.update(approval=state.approval)
            raise Stopped("expired", f"nobody decided within {spoken(approval.timeout)}") from None
        if state.settled() is False:
            last = self._rulings()[-1]
            raise Stopped("rejected", f"rejected by {last.by}" + (f": {last.reason}" if last.reason else ""))

    async def _publish(self, report: AuditReport) -> list[str]:
        """Merge the audited hash; return the keys that main had changed meanwhile, if that kept it out."""
        state = self._state
        assert state.branch and state.written
        state.enter("publishing", f"{state.written.head[:12]} into main")
        state.publishing = True
        approved_by = [ruling.by for ruling in self._rulings()]
        order = PublishOrder(
            origin=state.origin,
            branch=state.branch,
            head=state.written.head,
            message=merge_message(state.origin, list(state.written.tables)),
            properties=certificate(self._request, state.origin, report, approved_by),
            author=self._request.starter,
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
        heed_cancellation()

    async def _compensate(self, error: BaseException) -> None:
        """Bring a run that broke off to an end that leaves nothing half done."""
        state = self._state
        if state.is_published:
            return  # after the merge there is nothing to compensate
        cause, reason = explained(error)
        end = ending(cause, self._request.pipeline.on_failure)
        state.enter("compensating", reason)
        try:
            kept = await self._settle(end)
        except ActivityError as failure:
            kept = state.branch.name if state.branch else ""
            if kept:
                reason += f" (and {kept} is left, since it could not be dealt with: {words_of(failure)[1]})"
        if not state.is_published:
            outcome = "discarded" if end.outcome == "quarantined" and not kept else end.outcome
            state.update(outcome=outcome, cause=end.cause, reason=reason, branch=kept or None)

    async def _settle(self, end: Ending) -> str:
        """Quarantine or discard the branch; then, if a merge was under way, believe main alone."""
        state, kept = self._state, ""
        head = state.written.head if state.written else ""
        if state.branch and end.keep_branch:
            kept = await self._acts.quarantine_branch(state.origin, state.branch, head)
        elif state.branch:
            await self._acts.discard_branch(state.branch.name)
        elif state.attempt and end.cause != "already_published":
            # The branch was made, perhaps, and the answer lost.
            await self._acts.discard_branch(state.origin.branch, perhaps=True)
        if state.branch and state.publishing:
            await workflow.sleep(_COMMIT_TIMEOUT, summary="a merge in flight is decided after this")
            publication = await self._acts.confirm_publication(state.branch, head)
            if publication.merged:
                state.published(publication)
                if kept:
                    await self._acts.discard_branch(kept)
                return ""
        return kept

    async def _close(self) -> None:
        """Tidy up, tell people, and let whoever is deciding still get an answer."""
        state = self._state
        if state.is_published and state.branch:
            state.enter("cleaning up")
            try:
                await self._acts.discard_branch(state.branch.name)
            except ActivityError as error:
                state.update(reason=f"published; its branch {state.branch.name} is left: {words_of(error)[1]}")
        await self._record()
        state.enter("ended", state.result.outcome or "")
        state.index(OUTCOME.value_set(state.result.outcome or ""))
        await self._notify()
        await workflow.wait_condition(workflow.all_handlers_finished)

    async def _record(self) -> None:
        """Write the run down, where that is possible; it changes nothing about how the run ended."""
        state = self._state
        if not workflow.patched(_RECORDED) or state.result.cause == "unreachable":
            return  # where the catalogue is away, there is nothing to write to
        order = RecordOrder(origin=state.origin, result=state.result, ended_at=workflow.now().isoformat())
        try:
            state.update(report=await self._acts.record_run(order))
        except ActivityError as error:
            workflow.logger.warning("the run could not be written down: %s", words_of(error)[1])

    async def _notify(self, waiting_until: str = "") -> None:
        try:
            await self._acts.notify(Notice(result=self._state.result, waiting_until=waiting_until))
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("nobody could be told: %s", words_of(error)[1])

    def _rulings(self) -> list[Ruled]:
        return self._state.approval.decisions if self._state.approval else []

    @workflow.signal
    def approve(self, decision: Decision) -> None:
        """Say yes. A yes that does not count is noted in the status, with the reason."""
        self._state.decide(decision, approve=True)

    @workflow.signal
    def reject(self, decision: Decision) -> None:
        """Say no. A no that does not count is noted in the status, with the reason."""
        self._state.decide(decision, approve=False)

    @workflow.update
    def decide(self, ruling: Ruling) -> Ruled:
        """Say yes or no, and get an answer."""
        self._state.decide(ruling, approve=ruling.approve)
        return self._rulings()[-1]

    @decide.validator
    def _check_ruling(self, ruling: Ruling) -> None:
        why = self._state.refuse(ruling)
        if why is not None:
            raise ApplicationError(why, type="Refused", non_retryable=True)

    @workflow.query
    def status(self) -> RunStatus:
        """Say how the run stands."""
        return self._state.status()
