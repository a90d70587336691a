"""The worker: hosts the workflows and their activities. Here settings become clients, and clients activities.

    python worker.py

Settings come from the environment and `.env`; see `.env.example`. SIGINT and SIGTERM stop it.
"""

import sys

from runtime.interpreter import can_run

if not can_run("worker"):
    sys.exit(2)

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import Interceptor, Worker, WorkerDeploymentConfig

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
from activities.heartbeats import Heartbeats
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
from activities.target_catalog import TargetCatalog
from activities.verify_decision import VerifyDecisionActivity
from activities.verify_write import VerifyWriteActivity
from activities.write_table import WriteTableActivity
from engine.private_files import private_folder
from engine.process.guard import hide_process
from engine.runner import Spark, open_engine
from engine.scan_engines import in_process_engines
from engine.spark.configuration import UNREACHABLE_CATALOG
from engine.spark.engine import Engine
from engine.spark.jars import class_path
from engine.spark.java import find_java
from engine.spark_scan import SparkScan
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.arrivals.finisher import ArrivalFinisher
from lakehouse.audit_results_table import AuditResultsTable
from lakehouse.audited_tables import AuditedTables
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.input_manifests import InputManifests
from lakehouse.loaded_files import LoadedFiles
from lakehouse.open_catalog import open_catalog, unreachable_properties
from lakehouse.report_store import ReportStore
from lakehouse.targets.mirror import MirrorWriter
from runtime.background import end_background, register_with_temporal, start_background
from runtime.installation import with_installation
from runtime.log_context import RunLogContext
from runtime.shutdown import exit_after
from runtime.store_access import export_store_access
from runtime.telemetry import WORKER_READY, start_logs, start_telemetry
from runtime.temporal_client import connect
from sluice.approval.required import parse_approval_rules
from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.publishing.capabilities import describe_capabilities
from sluice.registration.targets import read_targets
from sluice.settings import Settings, read_environment, read_settings
from sluice.sql import parsing  # noqa: F401  # before there are threads: two that import sqlglot at once see half of it
from workflows.arrival_runs import ArrivalRuns
from workflows.auto_upgrade import AUTO_UPGRADE
from workflows.backfill import Backfill
from workflows.check_registrations import CheckRegistrations
from workflows.lake_query import LakeQuery
from workflows.landing_zone import LandingZone
from workflows.manage_quarantine import ManageQuarantine
from workflows.merge_queue import MergeQueue
from workflows.reap_branches import ReapBranches
from workflows.register_publication import RegisterPublication
from workflows.sandbox import sandbox
from workflows.start_pipeline import StartPipeline
from workflows.start_scheduled import StartScheduled
from workflows.target_header import TargetHeader
from workflows.write_audit_publish import WriteAuditPublish

_CATALOG_PAUSE = 2.0
"""The seconds between two calls of a catalog that does not answer when the worker starts."""
_CONTROL_AT_ONCE = 50
"""How many activities without Spark a worker runs at a time, and how many local ones beside them: each that runs in a
thread has one, so that those that wait for a slow service hold up no others."""
_POLLS = 5
_LOOP_THREADS = 64
"""The threads for what activities that run Spark do on disk and in memory, beside the jobs themselves."""
_SHUTDOWN_MARGIN = 60
"""The seconds, after the grace for activities, that jobs have to end and calls to return before the worker exits."""
WORKFLOWS = (
    WriteAuditPublish,
    LakeQuery,
    ManageQuarantine,
    MergeQueue,
    ReapBranches,
    RegisterPublication,
    CheckRegistrations,
    StartPipeline,
    StartScheduled,
    Backfill,
    LandingZone,
    ArrivalRuns,
)
Activity = Callable[..., Any]
MakeActivities = Callable[[BranchCatalog], list[Activity]]

log = logging.getLogger("sluice.worker")


async def open_catalog_when_it_answers(settings: Settings, stop: asyncio.Event) -> BranchCatalog | None:
    """Return the catalog as soon as its server answers; None if a signal says to stop before."""
    stopped = asyncio.ensure_future(stop.wait())
    while not stop.is_set():
        opening = asyncio.ensure_future(asyncio.to_thread(open_catalog, settings))
        await asyncio.wait({opening, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():  # a server that takes the request and is silent: `exit_after` ends its thread
            return None
        try:
            return opening.result()
        except ServiceUnavailable as error:
            log.warning("%s; asking again", error)
            await asyncio.wait({stopped}, timeout=_CATALOG_PAUSE)
    return None


def make_workers(client: Client, settings: Settings, engine: Engine, catalog: BranchCatalog) -> list[Worker]:
    """Return the workers of this process: for control, for Spark, or for both, each on a task queue of its own.

    That of Spark takes as many activities as there are slots for jobs. The others wait in the task queue, where a
    restart of this process costs them nothing.
    """
    io, role = file_io_properties(settings), settings.sluice_worker_role
    reports = ReportStore(settings.lake, io)
    log.info("the catalog: %s", describe_capabilities(catalog.capabilities))

    def control(catalog: BranchCatalog) -> list[Activity]:
        return control_activities(client, settings, catalog, io, reports)

    def spark(catalog: BranchCatalog) -> list[Activity]:
        return spark_activities(settings, engine, catalog, io, reports)

    def make(queue: str, activities: MakeActivities, workflows: Sequence[type], at_once: int) -> Worker:
        for_target = TargetCatalog(lambda target: activities(_open_for(settings, target)))
        return make_worker(client, settings, queue, activities(catalog), workflows, at_once, [for_target])

    workers = []
    if role != "spark":
        workers.append(make(settings.sluice_task_queue, control, WORKFLOWS, _CONTROL_AT_ONCE))
    if role != "control":
        workers.append(make(settings.spark_queue, spark, [], settings.slots))
    return workers


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


def _open_for(settings: Settings, target: str) -> BranchCatalog:
    """Return the catalog of runs that publish to another branch than main."""
    return open_catalog(settings.model_copy(update={"sluice_main": target}))


def make_worker(
    client: Client,
    settings: Settings,
    queue: str,
    activities: list[Activity],
    workflows: Sequence[type],
    at_once: int = _CONTROL_AT_ONCE,
    interceptors: Sequence[Interceptor] = (),
) -> Worker:
    """Return a worker for one task queue, which takes so many activities at a time.

    Args:
        interceptors: those that come before the common ones.
    """
    version = WorkerDeploymentVersion(f"sluice-{settings.sluice_installation}", settings.sluice_build_id)
    deployment = WorkerDeploymentConfig(version, True, VersioningBehavior.PINNED) if settings.sluice_build_id else None
    return Worker(
        client,
        task_queue=queue,
        workflows=[AUTO_UPGRADE.get(each, each) for each in workflows] if deployment else workflows,
        workflow_runner=sandbox(),
        activities=activities,
        interceptors=[*interceptors, TargetHeader(), RunLogContext(), Heartbeats()],
        deployment_config=deployment,
        activity_executor=ThreadPoolExecutor(at_once + _CONTROL_AT_ONCE, thread_name_prefix="activity"),
        max_concurrent_activities=at_once,
        max_concurrent_activity_task_polls=min(_POLLS, at_once),
        max_concurrent_local_activities=_CONTROL_AT_ONCE,
        # A progress that is a second old is live; a throttle of a minute would also hide a cancel as long.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        # After a crash the next worker gets a run's tasks this much later, at most.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=settings.sluice_shutdown_timeout),
    )


async def serve() -> None:
    """Work until a signal says to stop; then finish, or end, what is under way."""
    export_store_access(read_environment())
    environment = read_environment()
    settings = with_installation(read_settings(environment))
    start_logs(settings)
    if settings.sluice_worker_role != "control":
        log.info("Java for Spark: %s", find_java())
        if not class_path(settings) and not settings.spark_packages:
            raise BadEnvironment(f"there are no jars for Spark under {settings.sluice_home}: run `make setup`")
    client = await connect(environment, **start_telemetry(settings))
    await register_with_temporal(client, settings)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_LOOP_THREADS, thread_name_prefix="loop"))
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    catalog = await open_catalog_when_it_answers(settings, stop)
    if catalog is None:
        exit_after(_SHUTDOWN_MARGIN)
        return
    engine = open_engine(settings, unreachable_properties(UNREACHABLE_CATALOG))
    async with AsyncExitStack() as running:
        running.push_async_callback(engine.close)
        background = start_background(client, settings)
        for worker in make_workers(client, settings, engine, catalog):
            await running.enter_async_context(worker)
            log.info("takes %s", worker.task_queue)
        log.info(
            "%s: %s, lake %s, installation %s",
            WORKER_READY,
            settings.sluice_worker_role,
            settings.lake,
            settings.sluice_installation,
        )
        private_folder(settings.runs)
        if settings.sluice_worker_role != "control":
            background.append(asyncio.create_task(engine.warm_up()))
        await stop.wait()
        exit_after(settings.sluice_shutdown_timeout + _SHUTDOWN_MARGIN)
        await end_background(background)
        log.info("stopping")


def main() -> int:
    """Return the exit code: 0 stopped on request, 1 not stopped in time, 2 wrong settings or Java, 7 no Temporal."""
    hide_process()  # Spark jobs may run as the same user
    try:
        asyncio.run(serve())
    except BadEnvironment as error:
        print(f"worker: {error}", file=sys.stderr)
        return 2
    except ServiceUnavailable as error:
        print(f"worker: {error}", file=sys.stderr)
        return 7
    return 0


if __name__ == "__main__":
    sys.exit(main())
