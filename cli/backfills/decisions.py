"""Decisions about the runs of a backfill that wait for an approval, each bound to the hash that was shown."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer
from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from cli.approval.approving import make_decision
from cli.context import CommandContext
from cli.exit_codes import WRONG_USE
from cli.layout import print_rows
from runtime.approval.deciding import refusal_in
from runtime.approval.shown_report import check_named_report, report_name, shown_report
from runtime.backfills.backfills import ANSWER_WITHIN, read_backfill
from runtime.run.find_run import Handle, describe_run, query_status
from sluice.approval.decisions import Decision
from sluice.approval.waivers import describe_checks
from sluice.checks.verdicts import count_verdicts
from sluice.contracts.run import WAITING, RunStatus
from sluice.errors import InvalidPipeline
from sluice.presentation.changes import describe_summary
from sluice.sizes import format_count
from workflows.write_audit_publish import WriteAuditPublish

_AT_ONCE = 8
"""Maximum number of runs queried at the same time."""
_COLUMNS = ("partition", "run", "tables", "rows", "checks", "report")


@dataclass(frozen=True)
class DecisionRequest:
    """A person's decision about the waiting runs of a backfill."""

    approve: bool
    by: str | None = None
    reason: str = ""
    named: Sequence[str] = ()
    """Names of the reports that the person saw, as in `--hash`. If empty, all are shown and confirmed."""
    is_dry_run: bool = False
    """True if the waiting runs are only shown, and nothing is decided."""


@dataclass(frozen=True)
class WaitingRun:
    """A run of a backfill that waits for an approval."""

    partition: str
    handle: Handle
    status: RunStatus

    @property
    def to_waive(self) -> str:
        """Failed checks that need a waiver, as text; empty if there are none. Each run needs its own waiver."""
        approval = self.status.result.approval
        return describe_checks(approval.to_waive) if approval and approval.to_waive else ""

    def row(self) -> tuple[str, ...]:
        """Return the row of the run in the table that a person sees."""
        result = self.status.result
        tables, checks = ", ".join(result.tables), count_verdicts(result.checks)
        return self.partition, self.handle.id, tables, describe_summary(result), checks, self.report

    @property
    def report(self) -> str:
        """Name of the report that waits for the decision."""
        return report_name(shown_report(self.status.result))


@dataclass(frozen=True)
class Answer:
    """The answer of a run to the decision sent to it."""

    waiting: WaitingRun
    decision: Decision
    refused: str = ""
    """Reason why the decision does not count; empty if it counts."""


def check_reason(request: DecisionRequest) -> None:
    """Check that a decision made without a question has a reason.

    Raises:
        InvalidPipeline: the decision has no reason.
    """
    if request.named and not request.reason.strip():
        raise InvalidPipeline("--hash sends the decision without a question, so it needs --reason")


async def decide_backfill(context: CommandContext, pipeline: str, request: DecisionRequest) -> int:
    """Show the waiting runs of a backfill, ask once, and send a decision to each of them.

    Named reports are decided without a question, since the person saw them before.

    Returns:
        The exit code: 2 if a run refused its decision, for example because it changed meanwhile.

    Raises:
        InvalidPipeline: no run waits with a report of the given name.
    """
    present = await find_waiting_runs(context, pipeline)
    aside = [each for each in present if request.approve and each.to_waive]
    waiting = [each for each in present if each not in aside]
    if request.named:
        waiting = [_named(waiting, name) for name in dict.fromkeys(request.named)]
    _show(context, aside, waiting)
    if not waiting or request.is_dry_run:
        listed = [_shown_fields(each) for each in waiting]
        fields = {"pipeline": pipeline, "waiting": listed, "decided": [], "refused": []}
        context.print_result(fields, "Nothing was decided.")
        return 0
    decisions = [_decision(context, each, request) for each in waiting]
    if not request.named:
        _ask(f"{'Approve' if request.approve else 'Reject'} {format_count(len(waiting), 'report')} above?")
    answers = [await _send(each, decision) for each, decision in zip(waiting, decisions, strict=True)]
    return _print_answers(context, pipeline, answers, approve=request.approve)


def _named(waiting: Sequence[WaitingRun], name: str) -> WaitingRun:
    """Return the run whose report has this name.

    Raises:
        InvalidPipeline: no report has this name, or it is not the name of a report.
    """
    problems = []
    for each in waiting:
        try:
            check_named_report(name, shown_report(each.status.result))
        except InvalidPipeline as error:
            problems.append(str(error))
        else:
            return each
    if len(waiting) == 1:
        raise InvalidPipeline(problems[0])
    raise InvalidPipeline(f"no run waits with the report {name[:140]!r}: list the waiting reports by --dry-run")


async def find_waiting_runs(context: CommandContext, pipeline: str) -> list[WaitingRun]:
    """Return the runs of a pipeline's backfill that wait for an approval, in the order of their partitions."""
    children = (await read_backfill(context.client, context.installation_with_id, pipeline)).children
    room = asyncio.Semaphore(_AT_ONCE)

    async def find(partition: str, child: str) -> WaitingRun | None:
        async with room:
            return await _find_waiting(context, partition, child)

    waiting = await asyncio.gather(*(find(partition, child) for partition, child in children.items()))
    return [each for each in waiting if each]


async def _find_waiting(context: CommandContext, partition: str, child: str) -> WaitingRun | None:
    """Return the run that a partition's workflow started, if that run waits for an approval."""
    try:
        described = await context.client.get_workflow_handle(child).describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return None
    for pending in described.raw_description.pending_children:
        run = await describe_run(context.client, pending.workflow_id, pending.run_id or None)
        status = await query_status(run.handle) if run and not run.ended else None
        if run and status and status.stage == WAITING:
            return WaitingRun(partition, run.handle, status)
    return None


def _show(context: CommandContext, aside: list[WaitingRun], waiting: list[WaitingRun]) -> None:
    if waiting:
        print_rows(context.console, _COLUMNS, [each.row() for each in waiting])
    for each in aside:
        left = (
            f"{each.partition}: {each.handle.id} needs a waiver of {each.to_waive}: decide about this run separately, "
            f"by `approve {each.handle.id} --waive CHECK`"
        )
        context.console.print(left, highlight=False, soft_wrap=True, markup=False)
    if not waiting and not aside:
        context.console.print("No run of this backfill waits for approval.", highlight=False)


def _decision(context: CommandContext, waiting: WaitingRun, request: DecisionRequest) -> Decision:
    """Return a decision about the shown report, signed if the person has a key."""
    run_id = waiting.handle.run_id or ""
    return make_decision(
        run_id,
        waiting.status,
        approve=request.approve,
        by=request.by,
        reason=request.reason,
        named=waiting.report,
        settings=context.settings.approval,
        console=context.console,
        link=context.link(waiting.handle.id, run_id),
    )


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidPipeline(
            "to decide without a terminal, name the reports that you saw by --hash: --dry-run lists those that wait"
        )
    if not typer.confirm(question, err=True):
        raise InvalidPipeline("nothing was decided")


async def _send(waiting: WaitingRun, decision: Decision) -> Answer:
    """Send a decision to its run. The run refuses it if another hash or report waits there.

    A failure of one run does not stop the decisions for the others.
    """
    sending = waiting.handle.execute_update(WriteAuditPublish.decide, decision)
    try:
        counted = await asyncio.wait_for(sending, ANSWER_WITHIN)
    except WorkflowUpdateFailedError as error:
        return Answer(waiting, decision, refusal_in(error))
    except (RPCError, asyncio.TimeoutError) as error:
        if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
            return Answer(waiting, decision, "it has ended meanwhile")
        return Answer(waiting, decision, f"no answer ({error or 'no worker'}): check it with `status`")
    return Answer(waiting, counted)


def _shown_fields(waiting: WaitingRun) -> dict[str, Any]:
    return dict(zip((*_COLUMNS,), waiting.row(), strict=True))


def _print_answers(context: CommandContext, pipeline: str, answers: list[Answer], *, approve: bool) -> int:
    refused = [each for each in answers if each.refused]
    counted = [each for each in answers if not each.refused]
    verb = "Approved" if approve else "Rejected"
    lines = [f"{verb} {format_count(len(counted), 'run')} of {pipeline}."]
    lines += [f"Not decided: {each.waiting.partition}, {each.waiting.handle.id}: {each.refused}" for each in refused]
    fields = {
        "pipeline": pipeline,
        "decided": [_fields(each) for each in counted],
        "refused": [{**_fields(each), "why": each.refused} for each in refused],
    }
    context.print_result(fields, "\n".join(lines))
    return WRONG_USE if refused else 0


def _fields(answer: Answer) -> dict[str, Any]:
    decision = answer.decision.model_dump(mode="json")
    return {"partition": answer.waiting.partition, "workflow_id": answer.waiting.handle.id, "decision": decision}
