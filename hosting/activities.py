"""The activities that workers host: here settings become clients, and clients activities."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from temporalio.client import Client

from activities.audit_branch import AuditBranchActivity
from activities.check_registrations import CheckRegistrationsActivity
from activities.collect_arrivals import CollectArrivalsActivity
from activities.collect_backfill import CollectBackfillActivity
from activities.confirm_publication import ConfirmPublicationActivity
from activities.describe_quarantine import DescribeQuarantineActivity
from activities.discard_branch import DiscardBranchActivity
from activities.discard_quarantine import DiscardQuarantineActivity
from activities.emit_lineage import EmitLineageActivity
from activities.examine_installation import ExamineInstallationActivity
from activities.examine_spark import ExamineSparkActivity
from activities.find_conflicts import FindConflictsActivity
from activities.find_ended_workflows import FindEndedWorkflowsActivity
from activities.find_run_end import FindRunEndActivity
from activities.find_waivers import FindWaiversActivity
from activities.finish_arrivals import FinishArrivalsActivity
from activities.inspect_schedule import InspectScheduleActivity
from activities.list_arrivals import ListArrivalsActivity
from activities.list_files import ListFilesActivity
from activities.list_quarantine import ListQuarantineActivity
from activities.manage_quarantine import ManageQuarantineActivity
from activities.merge_queue import MergeQueueActivity
from activities.notify import NotifyActivity
from activities.notify_landing_zone import NotifyLandingZoneActivity
from activities.notify_registration import NotifyRegistrationActivity
from activities.notify_schedule import NotifyScheduleActivity
from activities.open_backfill import OpenBackfillActivity
from activities.open_branch import OpenBranchActivity
from activities.pause_schedule import PauseScheduleActivity
from activities.plan_publish import PlanPublishActivity
from activities.plan_release import PlanReleaseActivity
from activities.plan_requeue import PlanRequeueActivity
from activities.plan_rollback import PlanRollbackActivity
from activities.prepare_run import PrepareRunActivity
from activities.publish_branch import PublishBranchActivity
from activities.quarantine_branch import QuarantineBranchActivity
from activities.quarantine_rows import QuarantineRowsActivity
from activities.query_audit_results import QueryAuditResultsActivity
from activities.query_tables import QueryTablesActivity
from activities.read_batch import ReadBatchActivity
from activities.reap_branches import ReapBranchesActivity
from activities.rebase_branch import RebaseBranchActivity
from activities.record_run import RecordRunActivity
from activities.register_publication import RegisterPublicationActivity
from activities.report_arrival_runs import ReportArrivalRunsActivity
from activities.require_approval import ApprovalPolicy, RequireApprovalActivity
from activities.restore_tables import RestoreTablesActivity
from activities.resume_branch import ResumeBranchActivity
from activities.running_workflows import RunningWorkflows
from activities.scan_branch import ScanBranchActivity
from activities.scan_files import ScanFilesActivity
from activities.scan_tables import TableScanner
from activities.select_input import SelectInputActivity
from activities.split_batch import SplitBatchActivity
from activities.start_registrations import StartRegistrationsActivity
from activities.verify_decision import VerifyDecisionActivity
from activities.verify_write import VerifyWriteActivity
from activities.write_table import WriteTableActivity
from engine.runner import Spark
from engine.scan_engines import in_process_engines
from engine.spark.engine import Engine
from engine.spark_scan import SparkScan
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.arrivals.finisher import ArrivalFinisher
from lakehouse.audit_results_table import AuditResultsTable
from lakehouse.audited_tables import AuditedTables
from lakehouse.catalog import BranchCatalog
from lakehouse.input_manifests import InputManifests
from lakehouse.loaded_files import LoadedFiles
from lakehouse.report_store import ReportStore
from lakehouse.targets.mirror import MirrorWriter
from sluice.approval.required import parse_approval_rules
from sluice.registration.targets import read_targets
from sluice.settings import Settings

Activity = Callable[..., Any]

log = logging.getLogger("sluice.worker")


def control_activities(
    client: Client, settings: Settings, catalog: BranchCatalog, io: dict[str, str], reports: ReportStore
) -> list[Activity]:
    """Return the activities that need no Spark: on the catalog, on data files by DuckDB, and notifications."""
    installation = settings.sluice_installation
    tables, engines = AuditedTables(catalog, io), in_process_engines(settings, io)
    approvers = settings.sluice_approvers_file
    rules, is_main = parse_approval_rules(settings.sluice_require_approval), catalog.main == settings.sluice_main
    policy = ApprovalPolicy(catalog, approvers, rules, publishes_to_main=is_main)
    if policy.rules and not approvers:
        log.warning("SLUICE_REQUIRE_APPROVAL without SLUICE_APPROVERS_FILE: anybody may approve under any name")
    notify = NotifyActivity(settings, client.namespace)
    lineage = EmitLineageActivity(settings, catalog, io)
    merge_queue = MergeQueueActivity(client, installation, settings.sluice_task_queue)
    results = AuditResultsTable(catalog, settings.lake, io)
    loaded_files = LoadedFiles(catalog, InputManifests(settings.lake, io), settings.sluice_home.absolute())
    targets, mirrors = read_targets(settings.sluice_targets_file), MirrorWriter(catalog, io)
    registrations = StartRegistrationsActivity(client, targets, installation, settings.sluice_task_queue)
    batches = BatchStore(settings.lake, io)
    collector = ArrivalCollector(loaded_files, batches, settings.sluice_home.absolute(), installation)
    running = RunningWorkflows(client, asyncio.get_running_loop())
    return [
        OpenBranchActivity(catalog, io, installation, loaded_files, targets, settings.lake).open_branch,
        SelectInputActivity(catalog, loaded_files, installation).select_input,
        VerifyWriteActivity(catalog, io).verify_write,
        AuditBranchActivity(tables, reports, settings, engines).audit_branch,
        ScanFilesActivity(TableScanner(tables, reports, settings), engines).scan_files,
        FindConflictsActivity(catalog).find_conflicts,
        RebaseBranchActivity(catalog, io, installation, loaded_files=loaded_files).rebase_branch,
        ResumeBranchActivity(catalog, io, installation, loaded_files=loaded_files).resume_branch,
        RestoreTablesActivity(catalog, io, installation).restore_tables,
        merge_queue.acquire_merge_slot,
        merge_queue.release_merge_slot,
        VerifyDecisionActivity(approvers).verify_decision,
        RequireApprovalActivity(policy).require_approval,
        FindWaiversActivity(policy).find_waivers,
        PublishBranchActivity(catalog, policy, io, loaded_files).publish_branch,
        ConfirmPublicationActivity(catalog).confirm_publication,
        DiscardBranchActivity(catalog).discard_branch,
        DiscardQuarantineActivity(catalog).discard_quarantine,
        QuarantineBranchActivity(catalog, installation, io).quarantine_branch,
        RecordRunActivity(catalog, reports, results).record_run,
        ManageQuarantineActivity(catalog, running, installation).manage_quarantine,
        ReapBranchesActivity(catalog, io, running, installation).reap_branches,
        registrations.start_registrations,
        CheckRegistrationsActivity(catalog, mirrors, registrations).check_registrations,
        RegisterPublicationActivity(targets, installation, mirrors).register_publication,
        NotifyRegistrationActivity(settings).notify_registration,
        notify.can_notify,
        notify.notify,
        lineage.can_emit_lineage,
        lineage.emit_lineage,
        OpenBackfillActivity(catalog, installation).open_backfill,
        CollectBackfillActivity(catalog, io, loaded_files.manifests, installation).collect_backfill,
        PrepareRunActivity(client, settings, batches).prepare_run,
        FindRunEndActivity(client).find_run_end,
        InspectScheduleActivity(client).inspect_schedule,
        PauseScheduleActivity(client).pause_schedule,
        NotifyScheduleActivity(settings).notify_schedule,
        CollectArrivalsActivity(collector).collect_arrivals,
        FinishArrivalsActivity(ArrivalFinisher(collector)).finish_arrivals,
        ReadBatchActivity(batches).read_batch,
        SplitBatchActivity(batches).split_batch,
        ReportArrivalRunsActivity(
            client, installation, settings.sluice_task_queue, settings.sluice_arrival_runs
        ).report_arrival_runs,
        FindEndedWorkflowsActivity(running).find_ended_workflows,
        NotifyLandingZoneActivity(settings).notify_landing_zone,
        # What the command line asks about the lake:
        ListQuarantineActivity(catalog, io).list_quarantine,
        DescribeQuarantineActivity(catalog, io, reports).describe_quarantine,
        PlanPublishActivity(catalog).plan_publish,
        PlanReleaseActivity(catalog, installation, loaded_files).plan_release,
        PlanRollbackActivity(catalog).plan_rollback,
        PlanRequeueActivity(catalog, io, settings.sluice_catalog).plan_requeue,
        QueryAuditResultsActivity(results, settings.sluice_scan_memory).query_audit_results,
        QueryTablesActivity(catalog, io, settings.sluice_scan_memory, settings.runs / "duckdb").query_tables,
        ListFilesActivity(catalog, loaded_files).list_files,
        ListArrivalsActivity(collector).list_arrivals,
        ExamineInstallationActivity(settings, catalog, io, targets).examine_installation,
    ]


def spark_activities(
    settings: Settings, engine: Engine, catalog: BranchCatalog, io: dict[str, str], reports: ReportStore
) -> list[Activity]:
    """Return the activities that run Spark."""
    spark, tables = Spark(settings, engine), AuditedTables(catalog, io)
    scanner = TableScanner(tables, reports, settings)
    return [
        WriteTableActivity(catalog, spark, InputManifests(settings.lake, io)).write_table,
        ScanBranchActivity(scanner, SparkScan(spark, catalog)).scan_branch,
        QuarantineRowsActivity(tables, spark).quarantine_rows,
        ExamineSparkActivity(settings).examine_spark,
    ]
