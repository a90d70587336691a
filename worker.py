"""The worker process: build clients from the settings, and host the workflows and their activities.

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

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import Interceptor, Worker, WorkerDeploymentConfig

from activities.catalog_identity import CatalogIdentity
from activities.errors import ErrorMapping
from activities.heartbeats import Heartbeats
from activities.notifications.open_notifier import open_notifier
from activities.run.target_catalog import TargetCatalog
from engine.private_files import private_folder
from engine.process.guard import hide_process
from engine.runner import open_engine
from engine.spark.configuration import UNREACHABLE_CATALOG
from engine.spark.engine import Engine
from engine.spark.jars import class_path
from engine.spark.java import find_java
from hosting.activities import control_activities, spark_activities
from hosting.shared import Activity
from lakehouse.audit.report_store import ReportStore
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.open_catalog import open_catalog, unreachable_properties
from runtime.background import end_background, register_with_temporal, start_background
from runtime.installation.identity import with_installation
from runtime.installation.reached_installation import check_task_queue, worker_identity
from runtime.log_context import RunLogContext
from runtime.shutdown import exit_after
from runtime.store_access import export_store_access
from runtime.telemetry import WORKER_READY, start_logs, start_telemetry
from runtime.temporal_client import connect
from sluice.base_model import build_models
from sluice.environment_files import read_environment
from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.publishing.capabilities import describe_capabilities
from sluice.registration.targets import read_targets
from sluice.settings import Settings, read_settings
from sluice.sql import parsing  # noqa: F401  # before threads start: concurrent imports see a half-loaded sqlglot
from workflows.arrivals.arrival_runs import ArrivalRuns
from workflows.arrivals.landing_zone import LandingZone
from workflows.auto_upgrade import AUTO_UPGRADE
from workflows.backfills.backfill import Backfill
from workflows.backfills.discard_backfill import DiscardBackfill
from workflows.lake.lake_query import LakeQuery
from workflows.publishing.merge_queue import MergeQueue
from workflows.quarantine.manage_quarantine import ManageQuarantine
from workflows.quarantine.reap_branches import ReapBranches
from workflows.registration.check_registrations import CheckRegistrations
from workflows.registration.register_publication import RegisterPublication
from workflows.run.start_pipeline import StartPipeline
from workflows.sandbox import sandbox
from workflows.schedules.start_scheduled import StartScheduled
from workflows.target_header import TargetHeader
from workflows.write_audit_publish import WriteAuditPublish

_CATALOG_PAUSE = 2.0
"""Pause between two tries to reach a catalog that does not answer when the worker starts, in seconds."""
_CONTROL_AT_ONCE = 50
"""Maximum number of concurrent activities without Spark, and of concurrent local activities.

Each activity in a thread has its own thread, so an activity that waits for a slow service does not delay others.
"""
_POLLS = 5
_LOOP_THREADS = 64
"""Number of threads for the work of Spark activities on disk and in memory, apart from the jobs themselves."""
_SHUTDOWN_MARGIN = 60
"""Time that jobs have to end and calls to return, after the grace period for activities, in seconds."""
WORKFLOWS = (
    WriteAuditPublish,
    LakeQuery,
    ManageQuarantine,
    DiscardBackfill,
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
MakeActivities = Callable[[BranchCatalog], list[Activity]]

log = logging.getLogger("sluice.worker")


async def open_catalog_when_it_answers(settings: Settings, stop: asyncio.Event) -> BranchCatalog | None:
    """Return the catalog once its server answers, or None if a signal stops the worker first."""
    stopped = asyncio.ensure_future(stop.wait())
    while not stop.is_set():
        opening = asyncio.ensure_future(asyncio.to_thread(open_catalog, settings))
        await asyncio.wait({opening, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():  # the server accepts the request and stays silent: `exit_after` ends its thread
            return None
        try:
            return opening.result()
        except ServiceUnavailable as error:
            log.warning("%s; asking again", error)
            await asyncio.wait({stopped}, timeout=_CATALOG_PAUSE)
    return None


def make_workers(client: Client, settings: Settings, engine: Engine, catalog: BranchCatalog) -> list[Worker]:
    """Return the workers of this process: for control, for Spark, or for both, each on its own task queue.

    The Spark worker runs as many activities as there are slots for jobs. Further activities wait in the task queue,
    where a restart of this process does not affect them.
    """
    io, role = file_io_properties(settings.storage), settings.worker.sluice_worker_role
    reports = ReportStore(settings.storage.lake, io)
    log.info("the catalog: %s", describe_capabilities(catalog.capabilities))

    def spark(catalog: BranchCatalog) -> list[Activity]:
        return spark_activities(settings, engine, catalog, io, reports)

    def make(queue: str, activities: MakeActivities, workflows: Sequence[type], at_once: int) -> Worker:
        for_target = TargetCatalog(lambda target: activities(_open_for(settings, target)))
        of_catalog = [for_target, CatalogIdentity()]
        return make_worker(client, settings, queue, activities(catalog), workflows, at_once, of_catalog)

    workers = []
    if role != "spark":
        notifier = open_notifier(settings.notifications)
        targets = read_targets(settings.registration.sluice_targets_file)

        def control(catalog: BranchCatalog) -> list[Activity]:
            return control_activities(client, settings, catalog, io, reports, notifier, targets)

        workers.append(make(settings.installation.sluice_task_queue, control, WORKFLOWS, _CONTROL_AT_ONCE))
    if role != "control":
        workers.append(make(settings.installation.spark_queue, spark, [], settings.spark.slots))
    return workers


def _open_for(settings: Settings, target: str) -> BranchCatalog:
    """Open the catalog for runs that publish to a branch other than main."""
    return open_catalog(settings.with_values(sluice_main=target))


def make_worker(
    client: Client,
    settings: Settings,
    queue: str,
    activities: list[Activity],
    workflows: Sequence[type],
    at_once: int = _CONTROL_AT_ONCE,
    interceptors: Sequence[Interceptor] = (),
) -> Worker:
    """Return a worker for one task queue.

    Args:
        at_once: maximum number of concurrent activities.
        interceptors: interceptors that run before the common ones.
    """
    version = WorkerDeploymentVersion(
        f"sluice-{settings.installation.sluice_installation}", settings.worker.sluice_build_id
    )
    deployment = (
        WorkerDeploymentConfig(version, True, VersioningBehavior.PINNED) if settings.worker.sluice_build_id else None
    )
    return Worker(
        client,
        identity=worker_identity(settings.installation.sluice_installation),
        task_queue=queue,
        workflows=[AUTO_UPGRADE.get(each, each) for each in workflows] if deployment else workflows,
        workflow_runner=sandbox(),
        activities=activities,
        interceptors=[*interceptors, TargetHeader(), RunLogContext(), ErrorMapping(), Heartbeats()],
        deployment_config=deployment,
        activity_executor=ThreadPoolExecutor(at_once + _CONTROL_AT_ONCE, thread_name_prefix="activity"),
        max_concurrent_activities=at_once,
        max_concurrent_activity_task_polls=min(_POLLS, at_once),
        max_concurrent_local_activities=_CONTROL_AT_ONCE,
        # Progress that is one second old counts as live. A throttle of a minute would also delay a cancel by a minute.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        # Maximum delay, after a crash, before another worker gets a run's tasks.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=settings.worker.sluice_shutdown_timeout),
    )


async def serve() -> None:
    """Run the workers until a stop signal, then finish or end the work in progress."""
    export_store_access(read_environment())
    environment = read_environment()
    settings = with_installation(read_settings(environment))
    start_logs(settings.telemetry)
    build_models()
    if settings.worker.sluice_worker_role != "control":
        log.info("Java for Spark: %s", find_java())
        if not class_path(settings.storage) and not settings.spark.spark_packages:
            raise BadEnvironment(f"there are no jars for Spark under {settings.storage.sluice_home}: run `make setup`")
    client = await connect(environment, **start_telemetry(settings.telemetry))
    if warning := await check_task_queue(client, settings.installation, environment):
        log.warning("%s", warning)
    await register_with_temporal(client, settings)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_LOOP_THREADS, thread_name_prefix="loop"))
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    catalog = await open_catalog_when_it_answers(settings, stop)
    if catalog is None:
        exit_after(_SHUTDOWN_MARGIN)
        return
    engine = open_engine(settings.spark_jobs, unreachable_properties(UNREACHABLE_CATALOG))
    async with AsyncExitStack() as running:
        running.push_async_callback(engine.close)
        background = start_background(client, settings)
        for worker in make_workers(client, settings, engine, catalog):
            await running.enter_async_context(worker)
            log.info("polling the task queue %s", worker.task_queue)
        log.info(
            "%s: %s, lake %s, installation %s",
            WORKER_READY,
            settings.worker.sluice_worker_role,
            settings.storage.lake,
            settings.installation.sluice_installation,
        )
        private_folder(settings.storage.runs)
        if settings.worker.sluice_worker_role != "control":
            background.append(asyncio.create_task(engine.warm_up()))
        await stop.wait()
        exit_after(settings.worker.sluice_shutdown_timeout + _SHUTDOWN_MARGIN)
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
