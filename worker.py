"""Host the workflow and its activities: the one place where settings become clients, and clients activities.

    python worker.py

Settings come from the environment and `.env`; see `.env.example`. SIGINT and SIGTERM stop it.
"""

import asyncio
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from activities.audit_branch import AuditBranchActivity
from activities.divide_rows import DivideRowsActivity
from activities.end_branch import EndBranchActivity
from activities.notify import NotifyActivity
from activities.open_branch import OpenBranchActivity
from activities.publish_branch import PublishBranchActivity
from activities.rebase_branch import RebaseBranchActivity
from activities.record_run import RecordRunActivity
from activities.scan_branch import ScanBranchActivity
from activities.scan_files import ScanFilesActivity
from activities.verify_write import VerifyWriteActivity
from activities.write_table import WriteTableActivity
from cli.connection import connect, register_search_attributes
from engine.java import find_java
from engine.runner import Spark
from engine.submit import jar_files
from engine.supervise import SparkSlots
from lakehouse.ledger import Ledger
from lakehouse.mainline import Mainline
from lakehouse.opening import open_catalogue
from lakehouse.reports import Reports
from lakehouse.storage import storage_properties
from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.settings import Settings, read_environment, read_settings
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

_THREADS = 16
READY = "worker ready"
"""What the worker logs when it takes work; the local stack waits for it."""

log = logging.getLogger("sluice.worker")


def make_worker(client: Client, settings: Settings) -> Worker:
    """Wire a worker from a client and settings."""
    catalogue = open_catalogue(settings)
    mainline = Mainline(catalogue)
    io = storage_properties(settings)
    reports = Reports(settings.lake, io)
    ending = EndBranchActivity(catalogue)
    spark = Spark(settings, SparkSlots(settings.spark_slots or os.cpu_count() or 1))
    publishing = PublishBranchActivity(catalogue, mainline)
    rebasing = RebaseBranchActivity(catalogue, mainline, io, settings.sluice_realm)
    return Worker(
        client,
        task_queue=settings.sluice_task_queue,
        workflows=[WriteAuditPublish],
        workflow_runner=sandbox(),
        activities=[
            OpenBranchActivity(catalogue, mainline, io, settings.sluice_realm).open_branch,
            WriteTableActivity(spark).write_table,
            VerifyWriteActivity(catalogue, mainline, io).verify_write,
            AuditBranchActivity(catalogue, io, settings, reports).audit_branch,
            ScanFilesActivity(catalogue, io, settings, reports).scan_files,
            ScanBranchActivity(catalogue, io, spark, reports).scan_branch,
            DivideRowsActivity(catalogue, io, spark).divide_rows,
            rebasing.foresee_conflicts,
            rebasing.rebase_branch,
            publishing.publish_branch,
            publishing.confirm_publication,
            ending.discard_branch,
            ending.quarantine_branch,
            RecordRunActivity(reports, Ledger(catalogue, settings.lake, io)).record_run,
            NotifyActivity(settings, client.namespace).notify,
        ],
        activity_executor=ThreadPoolExecutor(_THREADS, thread_name_prefix="activity"),
        max_concurrent_activities=_THREADS,
        # A progress that is a second old is live; a throttle of a minute would also hide a cancel as long.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        # After a crash the next worker gets a run's tasks this much later, at most.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=5),
    )


async def serve() -> None:
    """Work until a signal says to stop."""
    environment = read_environment()
    settings = read_settings(environment)
    log.info("Java for Spark: %s", find_java())
    if not jar_files(settings) and not settings.spark_packages:
        raise BadEnvironment(f"there are no jars for Spark under {settings.sluice_home}: run `make setup`")
    client = await connect(environment)
    await register_search_attributes(client)
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    async with make_worker(client, settings):
        log.info("%s: queue %s, lake %s", READY, settings.sluice_task_queue, settings.lake)
        await stop.wait()
        log.info("stopping")


def main() -> int:
    """Return the exit code: 0 stopped on request, 2 wrong settings or Java, 7 Temporal cannot be reached."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
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
