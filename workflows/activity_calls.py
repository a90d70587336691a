"""Table of the activity calls of workflows: inputs and results, kinds, time-outs and retry policies.

The table is the body of `ActivityCalls`. `tests/unit/run/test_activity_calls.py` compares it with the activities that
the worker registers. A time-out comes from the policy in the run's request, or is a number in the table.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from sluice.approval.required import RequiredApproval
    from sluice.approval.waivers import WaivedCheck, describe_checks
    from sluice.contracts.arrival_runs import WorkflowIds, ZoneRuns
    from sluice.contracts.arrivals import (
        BatchPaths,
        BatchRef,
        CollectArrivalsInput,
        CollectArrivalsResult,
        FinishArrivalsInput,
        FinishArrivalsResult,
        ListArrivalsInput,
        ListArrivalsResult,
        ZoneNotice,
    )
    from sluice.contracts.audit import AuditInput, AuditResult, QuarantineRowsInput, QuarantineRowsResult, ScanInput
    from sluice.contracts.backfill import BackfillBranch, CollectBackfillInput, DiscardBackfillInput, OpenBackfillInput
    from sluice.contracts.examination import Examination, ExamineInstallationInput, ExamineSparkInput
    from sluice.contracts.existing_rows import (
        ExistingRowsResult,
        RebaseBranchInput,
        RebaseResult,
        RestoreTablesInput,
        ResumeBranchInput,
    )
    from sluice.contracts.input import SelectInputInput
    from sluice.contracts.lake_queries import (
        ListFilesInput,
        ListFilesResult,
        PlanReleaseInput,
        PlanRequeueInput,
        QueryAuditResultsInput,
        QueryRows,
        QueryTablesInput,
        ReleasePlan,
        RequeuePlan,
    )
    from sluice.contracts.lineage import EmitLineageInput
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.contracts.publish import (
        ConfirmPublicationInput,
        DiscardBranchInput,
        FindConflictsInput,
        FindWaiversInput,
        PlanPublishInput,
        Publication,
        PublishBranchInput,
        PublishPlan,
        RequireApprovalInput,
        VerifyDecisionInput,
    )
    from sluice.contracts.quarantine import (
        DiscardQuarantineInput,
        ManageQuarantineInput,
        QuarantineBranchInput,
        ReapBranchesInput,
        ReapBranchesResult,
    )
    from sluice.contracts.quarantine_queries import (
        DescribeQuarantineInput,
        DescribeQuarantineResult,
        ListQuarantineInput,
        ListQuarantineResult,
    )
    from sluice.contracts.references import BranchRef, RunRef
    from sluice.contracts.registration import (
        CheckedRegistrations,
        CheckRegistrationsInput,
        FailedRegistration,
        RegisterInput,
        Registration,
        StartRegistrationsInput,
    )
    from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
    from sluice.contracts.run import WAITING, Notification, RecordRunInput
    from sluice.contracts.schedules import InspectScheduleInput, PauseScheduleInput, ScheduledStart, ScheduleNotice
    from sluice.contracts.selected_input import SelectedInput
    from sluice.contracts.starting import FindRunEndInput, PreparedRun, RunEnd, StartedBy, StartPipelineInput
    from sluice.contracts.table_diffs import DiffTablesInput, DiffTablesResult
    from sluice.contracts.write import JobReport, OpenBranchInput, VerifyWriteInput, WriteResult, WriteTableInput
    from sluice.contracts.zone_loads import LoadPlan, PlanLoadInput
    from sluice.contracts.zone_requests import SplitBatchInput, SplitBatchResult
    from sluice.sizes import format_count
    from workflows.activity_call import ONCE, ActivityCall, ActivityCaller, Kind, fixed, step_timeout

_FIRST = 2
"""Priority of activities that follow a write, so that a run that has begun ends before others begin."""
_NOTIFY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3)
_LINEAGE = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_attempts=3)
_HOUSEKEEPING = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1))
_QUERY = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_attempts=3)
"""Retry policy of queries: few tries, because a person waits for the answer."""


class ActivityCalls(ActivityCaller):
    """The table of activity calls, with the policy of one run. `await calls.open_branch(input)` runs an activity."""

    # fmt: off
    # The workflow retries, so that the time of a lost worker does not count in the wait for the catalog.
    open_branch = ActivityCall(
        "open_branch", OpenBranchInput, BranchRef, Kind.LOCAL_FIRST,
        lambda input: f"branch for attempt {input.run_ref.attempt}: {', '.join(input.tables)}",
        retry=ONCE)
    resume_branch = ActivityCall(
        "resume_branch", ResumeBranchInput, ExistingRowsResult, Kind.ACTIVITY,
        lambda input: f"rows of {input.resume.branch}")
    restore_tables = ActivityCall(
        "restore_tables", RestoreTablesInput, ExistingRowsResult, Kind.ACTIVITY,
        lambda input: ", ".join(input.restore.tables))
    select_input = ActivityCall(
        "select_input", SelectInputInput, SelectedInput, Kind.LONG,
        lambda input: ", ".join(input.source.paths)[:200], timeout=step_timeout)
    # The workflow counts the attempts of a write, each on its own branch, so the activity itself never retries.
    write_table = ActivityCall(
        "write_table", WriteTableInput, JobReport, Kind.SPARK,
        lambda input: f"{input.write.job.rsplit('/', 1)[-1]} on {input.branch}",
        timeout=lambda policy, input: input.write.timeout, total_timeout=None, retry=ONCE)
    verify_write = ActivityCall(
        "verify_write", VerifyWriteInput, WriteResult, Kind.LOCAL_FIRST, lambda of: f"snapshots on {of.branch.name}")
    audit_branch = ActivityCall(
        "audit_branch", AuditInput, AuditResult, Kind.ACTIVITY,
        lambda input: f"{format_count(input.check_count, 'check')} at {input.head[:12]}, by metadata")
    audit_rebased_branch = ActivityCall(  # most of its verdicts are carried over
        "audit_branch", AuditInput, AuditResult, Kind.LOCAL_FIRST,
        lambda input: f"{format_count(input.check_count, 'check')} at {input.head[:12]}, after a rebase")
    # The workflow counts the tries of a scan, too, so that tries lost with a worker do not count.
    scan_files = ActivityCall(
        "scan_files", ScanInput, AuditResult, Kind.LONG,
        lambda input: f"{format_count(input.check_count, 'check')} by DuckDB",
        timeout=step_timeout, total_timeout=None, retry=ONCE)
    scan_branch = ActivityCall(
        "scan_branch", ScanInput, AuditResult, Kind.SPARK,
        lambda input: f"{format_count(input.check_count, 'check')} by Spark",
        timeout=step_timeout, total_timeout=None, retry=ONCE, priority=_FIRST)
    quarantine_rows = ActivityCall(  # no retries: after a failure, the next attempt writes on a new branch
        "quarantine_rows", QuarantineRowsInput, QuarantineRowsResult, Kind.SPARK,
        lambda input: f"bad rows of {', '.join(input.failing)}",
        timeout=step_timeout, total_timeout=None, retry=ONCE, priority=_FIRST)
    find_conflicts = ActivityCall(
        "find_conflicts", FindConflictsInput, list[str], Kind.LOCAL_FIRST,
        lambda input: f"dry-run merge of {input.head[:12]}")
    rebase_branch = ActivityCall(
        "rebase_branch", RebaseBranchInput, RebaseResult, Kind.LOCAL_FIRST,
        lambda input: f"{input.branch.name} onto the new head of main")
    acquire_merge_slot = ActivityCall(
        "acquire_merge_slot", MergeTicket, type(None), Kind.LOCAL_FIRST, lambda of: of.table, total_timeout=fixed(10))
    release_merge_slot = ActivityCall(
        "release_merge_slot", MergeTicket, type(None), Kind.LOCAL_FIRST, lambda of: of.table, total_timeout=fixed(10))
    require_approval = ActivityCall(
        "require_approval", RequireApprovalInput, RequiredApproval, Kind.LOCAL_FIRST,
        lambda input: f"approval that {input.head[:12]} needs")
    find_waivers = ActivityCall(
        "find_waivers", FindWaiversInput, list[WaivedCheck], Kind.LOCAL_FIRST,
        lambda input: f"waivers in force for {describe_checks(input.checks)}"[:200])
    verify_decision = ActivityCall(
        "verify_decision", VerifyDecisionInput, str, Kind.LOCAL_FIRST,
        lambda input: f"signature of {input.decision.by}", total_timeout=fixed(120))
    publish_branch = ActivityCall(
        "publish_branch", PublishBranchInput, Publication, Kind.ACTIVITY,
        lambda input: f"merge {input.head[:12]} into main")
    confirm_publication = ActivityCall(
        "confirm_publication", ConfirmPublicationInput, Publication, Kind.LOCAL_FIRST, lambda input: input.run_id)
    discard_branch = ActivityCall(
        "discard_branch", DiscardBranchInput, type(None), Kind.LOCAL_FIRST, lambda input: f"delete {input.branch}")
    discard_unconfirmed_branch = ActivityCall(  # the branch may not exist, so a long wait is not worthwhile
        "discard_branch", DiscardBranchInput, type(None), Kind.LOCAL_FIRST, lambda input: f"delete {input.branch}",
        total_timeout=fixed(10))
    discard_quarantine = ActivityCall(
        "discard_quarantine", DiscardQuarantineInput, str, Kind.ACTIVITY, lambda input: f"delete {input.branch}")
    quarantine_branch = ActivityCall(
        "quarantine_branch", QuarantineBranchInput, str, Kind.ACTIVITY, lambda input: f"keep as {input.name}")
    record_run = ActivityCall(
        "record_run", RecordRunInput, str, Kind.LOCAL_FIRST,
        lambda input: f"report of the run: {input.result.outcome}", total_timeout=fixed(60))
    checkpoint = ActivityCall("checkpoint", str, type(None), Kind.ACTIVITY, lambda why: why, priority=_FIRST)
    can_notify = ActivityCall(
        "can_notify", Notification, bool, Kind.LOCAL_FIRST, lambda _: "message routes", total_timeout=fixed(10))
    notify = ActivityCall(
        "notify", Notification, type(None), Kind.ACTIVITY,
        lambda input: input.result.outcome or WAITING,
        timeout=fixed(20), total_timeout=fixed(60), retry=_NOTIFY, on_cancel=ActivityCancellationType.TRY_CANCEL)
    can_emit_lineage = ActivityCall(
        "can_emit_lineage", RunRef, bool, Kind.LOCAL_FIRST, lambda _: "OpenLineage settings", total_timeout=fixed(10))
    emit_lineage = ActivityCall(  # only the end of a run waits for it, for at most two calls
        "emit_lineage", EmitLineageInput, type(None), Kind.ACTIVITY, lambda input: f"OpenLineage {input.event}",
        timeout=fixed(7), total_timeout=fixed(15), retry=_LINEAGE, on_cancel=ActivityCancellationType.TRY_CANCEL)
    start_registrations = ActivityCall(
        "start_registrations", StartRegistrationsInput, list[Registration], Kind.LOCAL_FIRST,
        lambda input: f"registrations of {input.event.pipeline}", total_timeout=fixed(600))
    register_publication = ActivityCall(  # the workflow retries, for a day
        "register_publication", RegisterInput, str, Kind.ACTIVITY, lambda input: f"{input.target} {input.table}",
        timeout=fixed(900), total_timeout=None, retry=ONCE)
    check_registrations = ActivityCall(
        "check_registrations", CheckRegistrationsInput, CheckedRegistrations, Kind.ACTIVITY,
        lambda input: "compare tables of targets with main", timeout=fixed(1800), total_timeout=fixed(3600),
        retry=_HOUSEKEEPING)
    notify_registration = ActivityCall(
        "notify_registration", FailedRegistration, type(None), Kind.ACTIVITY,
        lambda input: input.registration.target, timeout=fixed(20), total_timeout=fixed(60), retry=_NOTIFY)
    manage_quarantine = ActivityCall(
        "manage_quarantine", ManageQuarantineInput, str, Kind.ACTIVITY,
        lambda input: f"{input.action} {input.branch}",
        timeout=fixed(60), total_timeout=fixed(600), retry=_HOUSEKEEPING)
    reap_branches = ActivityCall(
        "reap_branches", ReapBranchesInput, ReapBranchesResult, Kind.ACTIVITY,
        lambda input: "orphan branches and expired quarantines",
        timeout=fixed(600), total_timeout=fixed(3600), retry=_HOUSEKEEPING)
    prepare_run = ActivityCall(  # it reads the whole input, as `select_input` does
        "prepare_run", StartPipelineInput, PreparedRun, Kind.LONG, lambda input: input.key or input.pipeline.name,
        timeout=step_timeout)
    open_backfill = ActivityCall(
        "open_backfill", OpenBackfillInput, BackfillBranch, Kind.LOCAL_FIRST, lambda input: input.pipeline)
    collect_backfill = ActivityCall(
        "collect_backfill", CollectBackfillInput, BackfillBranch, Kind.LONG, lambda input: input.branch,
        timeout=step_timeout)
    discard_backfill = ActivityCall(
        "discard_backfill", DiscardBackfillInput, list[str], Kind.ACTIVITY, lambda input: input.pipeline)
    plan_joint_release = ActivityCall(  # nobody waits at a terminal, so it has the time-outs of a run
        "plan_release", PlanReleaseInput, ReleasePlan, Kind.ACTIVITY, lambda input: input.run)
    find_run_end = ActivityCall("find_run_end", FindRunEndInput, RunEnd, Kind.LOCAL_FIRST, lambda of: of.workflow_id)
    cancel_started_runs = ActivityCall(
        "cancel_started_runs", StartedBy, list[FindRunEndInput], Kind.LOCAL_FIRST, lambda input: input.workflow_id)
    inspect_schedule = ActivityCall(
        "inspect_schedule", InspectScheduleInput, ScheduledStart, Kind.ACTIVITY, lambda input: input.schedule_id)
    pause_schedule = ActivityCall(
        "pause_schedule", PauseScheduleInput, type(None), Kind.ACTIVITY, lambda input: input.schedule_id)
    notify_schedule = ActivityCall(
        "notify_schedule", ScheduleNotice, type(None), Kind.ACTIVITY,
        lambda input: input.pipeline, timeout=fixed(20), total_timeout=fixed(60), retry=_NOTIFY)
    collect_arrivals = ActivityCall(
        "collect_arrivals", CollectArrivalsInput, CollectArrivalsResult, Kind.LONG, lambda input: input.pipeline.name,
        timeout=step_timeout)
    finish_arrivals = ActivityCall(  # the result includes files that could not be tagged or moved
        "finish_arrivals", FinishArrivalsInput, FinishArrivalsResult, Kind.LONG, lambda input: input.pipeline.name,
        timeout=step_timeout, retry=_HOUSEKEEPING)
    read_batch = ActivityCall("read_batch", BatchRef, BatchPaths, Kind.LOCAL_FIRST, lambda input: input.id)
    split_batch = ActivityCall("split_batch", SplitBatchInput, SplitBatchResult, Kind.LOCAL_FIRST, lambda of: of.ref.id)
    report_arrival_runs = ActivityCall(
        "report_arrival_runs", ZoneRuns, type(None), Kind.LOCAL_FIRST, lambda of: of.zone, total_timeout=fixed(60))
    find_ended_workflows = ActivityCall(
        "find_ended_workflows", WorkflowIds, WorkflowIds, Kind.LOCAL_FIRST, lambda _: "runs", total_timeout=fixed(60))
    notify_landing_zone = ActivityCall(
        "notify_landing_zone", ZoneNotice, type(None), Kind.ACTIVITY, lambda input: input.text[:200],
        timeout=fixed(20), total_timeout=fixed(60), retry=_NOTIFY)
    # Queries of the command line, see `workflows/lake/lake_query.py`. The workflow has 5 minutes. One try may
    # use most of that time if the work grows with the number of quarantines or with the history of main.
    list_quarantine = ActivityCall(
        "list_quarantine", ListQuarantineInput, ListQuarantineResult, Kind.ACTIVITY,
        lambda query: query.run or "all quarantined branches",
        timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    describe_quarantine = ActivityCall(
        "describe_quarantine", DescribeQuarantineInput, DescribeQuarantineResult, Kind.ACTIVITY,
        lambda query: query.run, timeout=fixed(60), total_timeout=fixed(90), retry=_QUERY)
    plan_publish = ActivityCall(
        "plan_publish", PlanPublishInput, PublishPlan, Kind.LOCAL_FIRST,
        lambda query: ", ".join(query.tables)[:200], timeout=fixed(10), total_timeout=fixed(20), retry=_QUERY)
    plan_release = ActivityCall("plan_release", PlanReleaseInput, ReleasePlan, Kind.ACTIVITY,
        lambda query: query.run, timeout=fixed(60), total_timeout=fixed(90), retry=_QUERY)
    plan_rollback = ActivityCall(
        "plan_rollback", PlanRollbackInput, PlanRollbackResult, Kind.ACTIVITY,
        lambda query: query.run, timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    plan_requeue = ActivityCall("plan_requeue", PlanRequeueInput, RequeuePlan, Kind.ACTIVITY,
        lambda query: query.pipeline.name, timeout=fixed(60), total_timeout=fixed(90), retry=_QUERY)
    query_audit_results = ActivityCall(
        "query_audit_results", QueryAuditResultsInput, QueryRows, Kind.ACTIVITY,
        lambda query: query.sql[:100], timeout=fixed(100), total_timeout=fixed(200), retry=_QUERY)
    query_tables = ActivityCall(
        "query_tables", QueryTablesInput, QueryRows, Kind.ACTIVITY,
        lambda query: query.sql[:100], timeout=fixed(100), total_timeout=fixed(200), retry=_QUERY)
    diff_tables = ActivityCall(
        "diff_tables", DiffTablesInput, DiffTablesResult, Kind.ACTIVITY, lambda query: query.what[:100],
        timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    list_files = ActivityCall(
        "list_files", ListFilesInput, ListFilesResult, Kind.ACTIVITY,
        lambda query: query.run or query.table or "all files",
        timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    list_arrivals = ActivityCall(
        "list_arrivals", ListArrivalsInput, ListArrivalsResult, Kind.ACTIVITY, lambda query: query.pipeline.name,
        timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    plan_load = ActivityCall("plan_load", PlanLoadInput, LoadPlan, Kind.ACTIVITY, lambda of: of.pipeline.name,
        timeout=fixed(240), total_timeout=fixed(240), retry=_QUERY)
    examine_installation = ActivityCall(
        "examine_installation", ExamineInstallationInput, Examination, Kind.ACTIVITY,
        lambda query: "catalog, lake, tokens, Slack", timeout=fixed(200), total_timeout=fixed(200), retry=ONCE)
    examine_spark = ActivityCall(
        "examine_spark", ExamineSparkInput, Examination, Kind.SPARK,
        lambda query: "Java, jars, disk", timeout=fixed(60), total_timeout=fixed(60), retry=ONCE, priority=_FIRST)
    # fmt: on
