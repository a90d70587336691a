"""The worker: hosts the workflows and their activities. Here settings become clients, and clients activities.

    python worker.py

Settings come from the environment and `.env`; see `.env.example`. SIGINT and SIGTERM stop it.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import Worker, WorkerDeploymentConfig

from activities.audit_branch import AuditBranchActivity
from activities.confirm_publication import ConfirmPublicationActivity
from activities.describe_quarantine import DescribeQuarantineActivity
from activities.discard_branch import DiscardBranchActivity
from activities.find_conflicts import FindConflictsActivity
from activities.list_quarantine import ListQuarantineActivity
from activities.manage_quarantine import ManageQuarantineActivity
from activities.merge_queue import MergeQueueActivity
from activities.notify import NotifyActivity
from activities.open_branch import OpenBranchActivity
from activities.plan_release import PlanReleaseActivity
from activities.plan_requeue import PlanRequeueActivity
from activities.plan_rollback import PlanRollbackActivity
from activities.publish_branch import PublishBranchActivity
from activities.quarantine_branch import QuarantineBranchActivity
from activities.quarantine_rows import QuarantineRowsActivity
from activities.query_audit_results import QueryAuditResultsActivity
from activities.reap_branches import ReapBranchesActivity
from activities.rebase_branch import RebaseBranchActivity
from activities.record_run import RecordRunActivity
from activities.restore_tables import RestoreTablesActivity
from activities.resume_branch import ResumeBranchActivity
from activities.scan_branch import ScanBranchActivity
from activities.scan_files import ScanFilesActivity
from activities.scan_tables import TableScanner
from activities.verify_decision import VerifyDecisionActivity
from activities.verify_write import VerifyWriteActivity
from activities.write_table import WriteTableActivity
from engine.runner import Spark, open_engine
from engine.scan_engines import in_process_engines
from engine.slots import SparkSlots
from engine.spark.configuration import UNREACHABLE_CATALOG
from engine.spark.engine import Engine
from engine.spark.jars import class_path
from engine.spark.java import find_java
from engine.spark_scan import SparkScan
from lakehouse.audit_results_table import AuditResultsTable
from lakehouse.audited_tables import AuditedTables
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.open_catalog import open_catalog, unreachable_properties
from lakehouse.report_store import ReportStore
from runtime.log_context import RunLogContext
from runtime.schedules import register_reaper
from runtime.telemetry import WORKER_READY, start_logs, start_telemetry
from runtime.temporal_client import connect, register_search_attributes
from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.publishing.capabilities import describe_capabilities
from sluice.settings import Settings, read_environment, read_settings
from workflows.lake_query import LakeQuery
from workflows.manage_quarantine import ManageQuarantine
from workflows.merge_queue import MergeQueue
from workflows.reap_branches import ReapBranches
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

_THREADS = 16
WORKFLOWS = (WriteAuditPublish, LakeQuery, ManageQuarantine, MergeQueue, ReapBranches)
Activity = Callable[..., Any]

log = logging.getLogger("sluice.worker")


def make_workers(client: Client, settings: Settings, engine: Engine) -> list[Worker]:
    """Return the workers of this process: for control, for Spark, or for both, each on a task queue of its own.

    A process that does both also takes Spark's activities from the queue of control, because runs whose policy names
    no queue of Spark put them there.
    """
    io, role = file_io_properties(settings), settings.sluice_worker_role
    reports = ReportStore(settings.lake, io)
    catalog = open_catalog(settings)
    log.info("the catalog: %s", describe_capabilities(catalog.capabilities))
    control = control_activities(client, settings, catalog, io, reports) if role != "spark" else []
    spark = spark_activities(settings, engine, catalog, io, reports) if role != "control" else []
    workers = []
    if control:
        workers.append(make_worker(client, settings, settings.sluice_task_queue, [*control, *spark], WORKFLOWS))
    if spark and not (control and settings.spark_queue == settings.sluice_task_queue):
        workers.append(make_worker(client, settings, settings.spark_queue, spark, []))
    return workers


def control_activities(
    client: Client, settings: Settings, catalog: BranchCatalog, io: dict[str, str], reports: ReportStore
) -> list[Activity]:
    """Return the activities that need no Spark: on the catalog, on data files by DuckDB, and notifications."""
    installation = settings.sluice_installation
    tables, engines = AuditedTables(catalog, io), in_process_engines(settings)
    approvers = settings.sluice_approvers_file
    notify = NotifyActivity(settings, client.namespace)
    merge_queue = MergeQueueActivity(client, installation, settings.sluice_task_queue)
    results = AuditResultsTable(catalog, settings.lake, io)
    return [
        OpenBranchActivity(catalog, io, installation).open_branch,
        VerifyWriteActivity(catalog, io).verify_write,
        AuditBranchActivity(tables, reports, settings, engines).audit_branch,
        ScanFilesActivity(TableScanner(tables, reports, settings), engines).scan_files,
        FindConflictsActivity(catalog).find_conflicts,
        RebaseBranchActivity(catalog, io, installation).rebase_branch,
        ResumeBranchActivity(catalog, io, installation).resume_branch,
        RestoreTablesActivity(catalog, io, installation).restore_tables,
        merge_queue.acquire_merge_slot,
        merge_queue.release_merge_slot,
        VerifyDecisionActivity(approvers).verify_decision,
        PublishBranchActivity(catalog, approvers).publish_branch,
        ConfirmPublicationActivity(catalog).confirm_publication,
        DiscardBranchActivity(catalog).discard_branch,
        QuarantineBranchActivity(catalog, installation).quarantine_branch,
        RecordRunActivity(reports, results).record_run,
        ManageQuarantineActivity(catalog, installation).manage_quarantine,
        ReapBranchesActivity(catalog, io, client, asyncio.get_running_loop(), installation).reap_branches,
        notify.can_notify,
        notify.notify,
        # What the command line asks about the lake:
        ListQuarantineActivity(catalog, io).list_quarantine,
        DescribeQuarantineActivity(catalog, io, reports).describe_quarantine,
        PlanReleaseActivity(catalog).plan_release,
        PlanRollbackActivity(catalog).plan_rollback,
        PlanRequeueActivity(catalog, io, settings.sluice_catalog).plan_requeue,
        QueryAuditResultsActivity(results, settings.sluice_scan_memory).query_audit_results,
    ]


def spark_activities(
    settings: Settings, engine: Engine, catalog: BranchCatalog, io: dict[str, str], reports: ReportStore
) -> list[Activity]:
    """Return the activities that run Spark."""
    spark, tables = Spark(settings, SparkSlots(settings.slots), engine), AuditedTables(catalog, io)
    scanner = TableScanner(tables, reports, settings)
    return [
        WriteTableActivity(catalog, spark).write_table,
        ScanBranchActivity(scanner, SparkScan(spark, catalog)).scan_branch,
        QuarantineRowsActivity(tables, spark).quarantine_rows,
    ]


def make_worker(
    client: Client, settings: Settings, queue: str, activities: list[Activity], workflows: Sequence[type]
) -> Worker:
    """Return a worker for one task queue."""
    version = WorkerDeploymentVersion(f"sluice-{settings.sluice_installation}", settings.sluice_build_id)
    deployment = WorkerDeploymentConfig(version, True, VersioningBehavior.PINNED) if settings.sluice_build_id else None
    return Worker(
        client,
        task_queue=queue,
        workflows=workflows,
        workflow_runner=sandbox(),
        activities=activities,
        interceptors=[RunLogContext()],
        deployment_config=deployment,
        activity_executor=ThreadPoolExecutor(_THREADS, thread_name_prefix="activity"),
        max_concurrent_activities=_THREADS,
        # A progress that is a second old is live; a throttle of a minute would also hide a cancel as long.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        # After a crash the next worker gets a run's tasks this much later, at most.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=settings.sluice_shutdown_timeout),
    )


async def serve() -> None:
    """Work until a signal says to stop; then finish, or end, what is under way."""
    environment = read_environment()
    settings = read_settings(environment)
    start_logs(settings)
    if settings.sluice_worker_role != "control":
        log.info("Java for Spark: %s", find_java())
        if not class_path(settings) and not settings.spark_packages:
            raise BadEnvironment(f"there are no jars for Spark under {settings.sluice_home}: run `make setup`")
    client = await connect(environment, **start_telemetry(settings))
    if settings.sluice_worker_role != "spark":
        await register_search_attributes(client)
        await register_reaper(client, settings)
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    engine = open_engine(settings, unreachable_properties(UNREACHABLE_CATALOG))
    async with AsyncExitStack() as running:
        running.push_async_callback(engine.close)
        for worker in make_workers(client, settings, engine):
            await running.enter_async_context(worker)
            log.info("takes %s", worker.task_queue)
        log.info("%s: %s, lake %s", WORKER_READY, settings.sluice_worker_role, settings.lake)
        warming = [asyncio.create_task(engine.warm_up())] if settings.sluice_worker_role != "control" else []
        await stop.wait()
        for task in warming:
            task.cancel()
        log.info("stopping")


def main() -> int:
    """Return the exit code: 0 stopped on request, 2 wrong settings or Java, 7 Temporal cannot be reached."""
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
