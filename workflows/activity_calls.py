"""How the workflows call each activity: its input and result, its kind, its time-outs and its retry policy.

The one table of all of this is the body of `ActivityCalls`; `tests/unit/test_activity_calls.py` holds it against the
activities that the worker registers. Time-outs come from the policy in the run's request, or are written in the table.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, TypeVar, overload

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.audit import (
        SCAN_ATTEMPTS,
        AuditInput,
        AuditResult,
        QuarantineRowsInput,
        QuarantineRowsResult,
        ScanInput,
    )
    from sluice.contracts.existing_rows import (
        ExistingRowsResult,
        RebaseBranchInput,
        RebaseResult,
        RestoreTablesInput,
        ResumeBranchInput,
    )
    from sluice.contracts.lake_queries import (
        DescribeQuarantineInput,
        DescribeQuarantineResult,
        ListQuarantineInput,
        ListQuarantineResult,
        PlanReleaseInput,
        PlanRequeueInput,
        PlanRollbackInput,
        PlanRollbackResult,
        QueryAuditResultsInput,
        QueryAuditResultsResult,
        ReleasePlan,
        RequeuePlan,
    )
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.contracts.publish import (
        ConfirmPublicationInput,
        FindConflictsInput,
        Publication,
        PublishBranchInput,
        VerifyDecisionInput,
    )
    from sluice.contracts.quarantine import (
        ManageQuarantineInput,
        QuarantineBranchInput,
        ReapBranchesInput,
        ReapBranchesResult,
    )
    from sluice.contracts.references import BranchRef
    from sluice.contracts.run import Notification, Policy, RecordRunInput
    from sluice.contracts.write import JobReport, OpenBranchInput, VerifyWriteInput, WriteResult, WriteTableInput

InputT = TypeVar("InputT")
ResultT = TypeVar("ResultT")
Timeout = Callable[[Policy, Any], float]
"""Seconds, by the run's policy and the activity's input."""


class Kind(Enum):
    """How an activity runs."""

    ACTIVITY = "an activity"
    LOCAL_FIRST = "a local activity; if that fails or takes long, an activity"
    LONG = "an activity that heartbeats"
    SPARK = "an activity that heartbeats, on the task queue of Spark"


def fixed(value: float) -> Timeout:
    """Return a time-out that no policy changes."""
    return lambda policy, input: value


def activity_timeout(policy: Policy, _: object) -> float:
    """Return how long one try of a short activity may take."""
    return policy.activity_timeout


def step_timeout(policy: Policy, _: object) -> float:
    """Return how long a service may be unavailable in the middle of a run, or how long a scan may take."""
    return policy.step_timeout


def open_timeout(policy: Policy, input: OpenBranchInput) -> float:
    """Return how long to wait for the first branch of a run: it has nothing to lose yet, so it gives up soon."""
    return policy.open_timeout if input.catalog_id is None else policy.step_timeout


_LOCAL_TIMEOUT = timedelta(seconds=5)
"""How long the local try of a `LOCAL_FIRST` activity may take."""
_UNTIL_TIMEOUT = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10))
_ONCE = RetryPolicy(maximum_attempts=1)
_SCAN = RetryPolicy(
    initial_interval=timedelta(seconds=2), maximum_interval=timedelta(minutes=1), maximum_attempts=SCAN_ATTEMPTS
)
_NOTIFY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3)
_HOUSEKEEPING = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1))
_QUERY = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_attempts=3)
"""A person waits for the answer."""
_WAIT = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
"""A cancelled run waits until the activity has ended: compensation must not begin while Spark still writes."""


@dataclass(frozen=True)
class ActivityCall(Generic[InputT, ResultT]):
    """One row of the table: how one activity is called. As an attribute of `ActivityCalls` it is a method."""

    name: str
    input: type[InputT]
    result: type[ResultT]
    kind: Kind
    summary: Callable[[InputT], str]
    """The activity's summary in the Temporal Web UI."""
    timeout: Timeout = activity_timeout
    """How long one try may take (start to close)."""
    total_timeout: Timeout | None = step_timeout
    """How long all tries together may take (schedule to close)."""
    retry: RetryPolicy = field(default_factory=lambda: _UNTIL_TIMEOUT)
    on_cancel: ActivityCancellationType = _WAIT

    @overload
    def __get__(self, calls: None, owner: type) -> "ActivityCall[InputT, ResultT]": ...
    @overload
    def __get__(self, calls: "ActivityCalls", owner: type) -> Callable[[InputT], Coroutine[Any, Any, ResultT]]: ...
    def __get__(self, calls: "ActivityCalls | None", owner: type) -> Any:
        return self if calls is None else lambda input: calls.execute(self, input)


class ActivityCalls:
    """The table of activity calls, with the policy of one run. `await calls.open_branch(input)` runs an activity."""

    # fmt: off
    open_branch = ActivityCall(
        "open_branch", OpenBranchInput, BranchRef, Kind.LOCAL_FIRST,
        lambda input: f"branch for attempt {input.run_ref.attempt}: {', '.join(input.tables)}",
        total_timeout=open_timeout)
    resume_branch = ActivityCall(
        "resume_branch", ResumeBranchInput, ExistingRowsResult, Kind.ACTIVITY,
        lambda input: f"rows of {input.resume.branch}")
    restore_tables = ActivityCall(
        "restore_tables", RestoreTablesInput, ExistingRowsResult, Kind.ACTIVITY,
        lambda input: ", ".join(input.restore.tables))
    # The workflow counts the attempts of a write, each on a branch of its own, so one activity never retries.
    write_table = ActivityCall(
        "write_table", WriteTableInput, JobReport, Kind.SPARK,
        lambda input: f"{input.write.job.rsplit('/', 1)[-1]} on {input.branch}",
        timeout=lambda policy, input: input.write.timeout, total_timeout=None, retry=_ONCE)
    verify_write = ActivityCall(
        "verify_write", VerifyWriteInput, WriteResult, Kind.LOCAL_FIRST,
        lambda input: f"snapshots on {input.branch.name}")
    audit_branch = ActivityCall(
        "audit_branch", AuditInput, AuditResult, Kind.ACTIVITY,
        lambda input: f"{input.check_count} checks at {input.head[:12]}, by metadata")
    audit_rebased_branch = ActivityCall(  # most of its verdicts are carried over
        "audit_branch", AuditInput, AuditResult, Kind.LOCAL_FIRST,
        lambda input: f"{input.check_count} checks at {input.head[:12]}, after a rebase")
    scan_files = ActivityCall(
        "scan_files", ScanInput, AuditResult, Kind.LONG,
        lambda input: f"{input.check_count} checks by DuckDB",
        timeout=step_timeout, total_timeout=None, retry=_SCAN)
    scan_branch = ActivityCall(
        "scan_branch", ScanInput, AuditResult, Kind.SPARK,
        lambda input: f"{input.check_count} checks by Spark",
        timeout=step_timeout, total_timeout=None, retry=_SCAN)
    quarantine_rows = ActivityCall(  # never retried: an attempt that fails here is rewritten on a new branch
        "quarantine_rows", QuarantineRowsInput, QuarantineRowsResult, Kind.SPARK,
        lambda input: f"bad rows of {', '.join(input.failing)}",
        timeout=step_timeout, total_timeout=None, retry=_ONCE)
    find_conflicts = ActivityCall(
        "find_conflicts", FindConflictsInput, list[str], Kind.LOCAL_FIRST,
        lambda input: f"dry-run merge of {input.head[:12]}")
    rebase_branch = ActivityCall(
        "rebase_branch", RebaseBranchInput, RebaseResult, Kind.LOCAL_FIRST,
        lambda input: f"{input.branch.name} onto the new head of main")
    acquire_merge_slot = ActivityCall(
        "acquire_merge_slot", MergeTicket, type(None), Kind.LOCAL_FIRST,
        lambda ticket: ticket.table, total_timeout=fixed(10))
    release_merge_slot = ActivityCall(
        "release_merge_slot", MergeTicket, type(None), Kind.LOCAL_FIRST,
        lambda ticket: ticket.table, total_timeout=fixed(10))
    verify_decision = ActivityCall(
        "verify_decision", VerifyDecisionInput, str, Kind.LOCAL_FIRST,
        lambda input: f"signature of {input.decision.by}", total_timeout=fixed(120))
    publish_branch = ActivityCall(
        "publish_branch", PublishBranchInput, Publication, Kind.ACTIVITY,
        lambda input: f"merge {input.head[:12]} into main")
    confirm_publication = ActivityCall(
        "confirm_publication", ConfirmPublicationInput, Publication, Kind.ACTIVITY,
        lambda input: f"look for {input.head[:12]} on main")
    discard_branch = ActivityCall(
        "discard_branch", str, type(None), Kind.LOCAL_FIRST, lambda name: f"delete {name}")
    discard_unconfirmed_branch = ActivityCall(  # it was created, or the answer was an error: not worth a long wait
        "discard_branch", str, type(None), Kind.LOCAL_FIRST, lambda name: f"delete {name}, if it exists",
        total_timeout=fixed(10))
    quarantine_branch = ActivityCall(
        "quarantine_branch", QuarantineBranchInput, str, Kind.ACTIVITY, lambda input: f"keep as {input.name}")
    record_run = ActivityCall(
        "record_run", RecordRunInput, str, Kind.LOCAL_FIRST,
        lambda input: f"report of a run that ended {input.result.outcome}", total_timeout=fixed(60))
    can_notify = ActivityCall(
        "can_notify", Notification, bool, Kind.LOCAL_FIRST, lambda input: "is Slack set up?", total_timeout=fixed(10))
    notify = ActivityCall(
        "notify", Notification, type(None), Kind.ACTIVITY,
        lambda input: input.result.outcome or "waiting for approval",
        timeout=fixed(20), total_timeout=fixed(60), retry=_NOTIFY, on_cancel=ActivityCancellationType.TRY_CANCEL)
    manage_quarantine = ActivityCall(
        "manage_quarantine", ManageQuarantineInput, str, Kind.ACTIVITY,
        lambda input: f"{input.action} {input.branch}",
        timeout=fixed(60), total_timeout=fixed(600), retry=_HOUSEKEEPING)
    reap_branches = ActivityCall(
        "reap_branches", ReapBranchesInput, ReapBranchesResult, Kind.ACTIVITY,
        lambda input: "orphan branches and expired quarantines",
        timeout=fixed(600), total_timeout=fixed(3600), retry=_HOUSEKEEPING)
    # What the command line asks about the lake; see `workflows/lake_query.py`. The workflow has 5 minutes. One try may
    # use most of them where the work grows with the number of quarantines, or with the history of main.
    list_quarantine = ActivityCall(
        "list_quarantine", ListQuarantineInput, ListQuarantineResult, Kind.ACTIVITY,
        lambda query: query.run or "all quarantined branches",
        timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    describe_quarantine = ActivityCall(
        "describe_quarantine", DescribeQuarantineInput, DescribeQuarantineResult, Kind.ACTIVITY,
        lambda query: query.run, timeout=fixed(60), total_timeout=fixed(90), retry=_QUERY)
    plan_release = ActivityCall(
        "plan_release", PlanReleaseInput, ReleasePlan, Kind.ACTIVITY,
        lambda query: query.run, timeout=fixed(60), total_timeout=fixed(90), retry=_QUERY)
    plan_rollback = ActivityCall(
        "plan_rollback", PlanRollbackInput, PlanRollbackResult, Kind.ACTIVITY,
        lambda query: query.run_id, timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    plan_requeue = ActivityCall(
        "plan_requeue", PlanRequeueInput, RequeuePlan, Kind.ACTIVITY,
        lambda query: query.pipeline.name, timeout=fixed(60), total_timeout=fixed(90), retry=_QUERY)
    query_audit_results = ActivityCall(
        "query_audit_results", QueryAuditResultsInput, QueryAuditResultsResult, Kind.ACTIVITY,
        lambda query: query.sql[:100], timeout=fixed(60), total_timeout=fixed(90), retry=_QUERY)
    # fmt: on

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()

    async def execute(self, call: ActivityCall[InputT, ResultT], input: InputT) -> ResultT:
        """Run one activity as its row of the table says.

        A local activity costs no round trip through the server. If it fails, an activity follows, with the long
        time-outs, and the failure is visible in the Web UI. The local try may still go on then: these activities are
        idempotent.
        """
        if call.kind is Kind.LOCAL_FIRST:
            try:
                return await workflow.execute_local_activity(  # type: ignore[no-any-return]
                    call.name,
                    input,
                    result_type=call.result,
                    start_to_close_timeout=_LOCAL_TIMEOUT,
                    retry_policy=_ONCE,
                    cancellation_type=call.on_cancel,
                    summary=call.summary(input),
                )
            except FailureError as error:  # the failure itself, not wrapped in an ActivityError
                if is_cancelled_exception(error):
                    raise
        policy = self._policy
        heartbeats = call.kind in (Kind.LONG, Kind.SPARK)
        return await workflow.execute_activity(  # type: ignore[no-any-return]
            call.name,
            input,
            result_type=call.result,
            task_queue=policy.spark_queue or None if call.kind is Kind.SPARK else None,
            start_to_close_timeout=timedelta(seconds=call.timeout(policy, input)),
            schedule_to_close_timeout=_seconds(call.total_timeout, policy, input),
            heartbeat_timeout=timedelta(seconds=policy.heartbeat_timeout) if heartbeats else None,
            retry_policy=call.retry,
            cancellation_type=call.on_cancel,
            summary=call.summary(input),
        )


def _seconds(timeout: Timeout | None, policy: Policy, input: object) -> timedelta | None:
    return timedelta(seconds=timeout(policy, input)) if timeout else None
