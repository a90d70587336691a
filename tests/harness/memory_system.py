"""A system without Spark and Nessie: a Temporal server, a worker with the real activities, a catalog in memory."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.arrivals.collect_arrivals import CollectArrivalsActivity
from activities.arrivals.plan_load import PlanLoadActivity
from activities.catalog_identity import CatalogIdentity
from activities.errors import ErrorMapping
from activities.notifications.open_notifier import open_notifier
from activities.run.target_catalog import TargetCatalog
from hosting.activities import control_activities, spark_activities
from hosting.shared import Activity
from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.audit.report_store import ReportStore
from lakehouse.source_files import OnProgress
from sluice.contracts.arrivals import CollectArrivalsInput, CollectArrivalsResult
from sluice.pipeline.model import Pipeline
from sluice.registration.targets import NO_TARGETS
from sluice.settings import Settings
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_engine import MemoryEngine
from tests.harness.memory_lake import MemoryLake
from tests.harness.waiting import LIMIT
from worker import WORKFLOWS
from workflows.target_header import TargetHeader

_Answer = TypeVar("_Answer")
COLUMNS = ("id", "v", "p")
"""The columns of every table. A column that a file lacks is null."""


@dataclass
class ZoneClock:
    """The clock of landing zones, which tests set, and the number of listings of each zone."""

    now: float = 1_000_000.0
    listings: dict[str, int] = field(default_factory=dict)
    """Number of ended listings, by pipeline."""


@dataclass(frozen=True)
class ClockedCollector(ArrivalCollector):
    """A collector whose clock the tests set."""

    zone_clock: ZoneClock = field(default_factory=ZoneClock)

    def collect(
        self, pipeline: Pipeline, input: CollectArrivalsInput, on_progress: OnProgress = lambda _: None
    ) -> CollectArrivalsResult:
        """List a zone, and count the listing."""
        try:
            return super().collect(pipeline, input, on_progress)
        finally:
            self.zone_clock.listings[pipeline.name] = self.zone_clock.listings.get(pipeline.name, 0) + 1


@dataclass
class MemorySystem:
    """The parts of a running system. Its worker and client use an event loop in a thread of their own."""

    settings: Settings
    catalog: MemoryCatalog
    lake: MemoryLake
    engine: MemoryEngine
    client: Client
    loop: asyncio.AbstractEventLoop
    clock: ZoneClock

    def run(self, coroutine: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Run a coroutine on the system's event loop; return what it returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()


@contextmanager
def memory_system(temporal_cli: Path, folder: Path) -> Iterator[MemorySystem]:
    """Start a system; stop it afterwards."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="memory-system", daemon=True)
    thread.start()
    stop, ready = asyncio.Event(), loop.create_future()
    serving = asyncio.run_coroutine_threadsafe(_serve(temporal_cli, folder, ready, stop), loop)
    serving.add_done_callback(lambda served: loop.call_soon_threadsafe(_pass_on_failure, served, ready))
    try:
        yield asyncio.run_coroutine_threadsafe(_result(ready), loop).result()
    finally:
        loop.call_soon_threadsafe(stop.set)
        serving.result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _result(ready: "asyncio.Future[MemorySystem]") -> MemorySystem:
    return await ready


def _pass_on_failure(served: "Future[None]", ready: "asyncio.Future[MemorySystem]") -> None:
    error = served.exception()
    if error and not ready.done():
        ready.set_exception(error)


async def _serve(temporal_cli: Path, folder: Path, ready: "asyncio.Future[MemorySystem]", stop: asyncio.Event) -> None:
    settings = Settings.of(
        sluice_home=folder / "home",
        sluice_installation="memory",
        warehouse=(folder / "lake").as_uri(),
        sluice_task_queue="memory",
        sluice_worker_wait=LIMIT,  # the worker is there, and may be slow
    )
    async with await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(temporal_cli),
        dev_server_startup_timeout=timedelta(seconds=LIMIT),
    ) as environment:
        catalog = MemoryCatalog()
        lake = MemoryLake(catalog, folder / "tables", COLUMNS)
        engine = MemoryEngine(lake)
        reports, notifier = ReportStore(settings.storage.lake, {}), open_notifier(settings.notifications)
        clock = ZoneClock()

        def make_activities(of: MemoryCatalog) -> list[Activity]:
            control = control_activities(environment.client, settings, of, {}, reports, notifier, NO_TARGETS)
            return [*_by_clock(control, clock), *spark_activities(settings, engine, of, {}, reports)]

        activities = make_activities(catalog)
        for_target = TargetCatalog(lambda target: make_activities(catalog.publishing_to(target)))
        queues = {settings.installation.sluice_task_queue: WORKFLOWS, settings.installation.spark_queue: ()}
        workers = [
            Worker(
                environment.client,
                task_queue=queue,
                workflows=workflows,
                activities=activities,
                interceptors=[for_target, CatalogIdentity(), TargetHeader(), ErrorMapping()],
                workflow_runner=UnsandboxedWorkflowRunner(),
                activity_executor=ThreadPoolExecutor(16),
                max_concurrent_activities=16,
            )
            for queue, workflows in queues.items()
        ]
        tasks = [asyncio.create_task(worker.run()) for worker in workers]
        loop = asyncio.get_running_loop()
        ready.set_result(MemorySystem(settings, catalog, lake, engine, environment.client, loop, clock))
        await stop.wait()
        for worker in workers:
            await worker.shutdown()
        await asyncio.gather(*tasks)


def _by_clock(activities: list[Activity], clock: ZoneClock) -> list[Activity]:
    """Return the activities. Those that list landing zones use the given clock."""

    def clocked(activity: Activity) -> Activity:
        owner = getattr(activity, "__self__", None)
        if not isinstance(owner, CollectArrivalsActivity | PlanLoadActivity):
            return activity
        of = owner.collector
        collector = ClockedCollector(
            of.loaded_files, of.batches, of.home, of.installation, clock=lambda: clock.now, zone_clock=clock
        )
        if isinstance(owner, PlanLoadActivity):
            return PlanLoadActivity(collector).plan_load
        return CollectArrivalsActivity(collector).collect_arrivals

    return [clocked(activity) for activity in activities]
