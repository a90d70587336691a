"""Time-skipping servers, and workers whose activities are fakes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.arrivals.report_arrival_runs import ReportArrivalRunsActivity
from activities.errors import ErrorMapping
from sluice.contracts.arrival_runs import arrival_runs_id
from tests.harness.backfill_workflow import Backfills
from tests.harness.notified_zone import NotifiedZones, notified_zones
from tests.harness.skipped_time import start_time_skipping
from tests.harness.workflow import FakeActivities, WorkflowHarness
from tests.harness.zone_workflow import RunOfATest, Zone
from workflows.arrivals.arrival_runs import ArrivalRuns
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish


@pytest.fixture(scope="session")
async def time_skipping(home: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkflowEnvironment]:
    """The session's time-skipping server. Tests must not leave a workflow open in it: that would stop the time."""
    async with start_time_skipping(home, tmp_path_factory.mktemp("server")) as environment:
        yield environment


@pytest.fixture(scope="module")
async def own_time_skipping(home: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkflowEnvironment]:
    """A time-skipping server of one module, for tests that leave workflows open."""
    async with start_time_skipping(home, tmp_path_factory.mktemp("server")) as environment:
        yield environment


@pytest.fixture
async def harness(time_skipping: WorkflowEnvironment) -> AsyncIterator[WorkflowHarness]:
    """A workflow harness, whose worker runs."""
    async with _hosted(WorkflowHarness(time_skipping.client, FakeActivities())) as harness:
        yield harness


@pytest.fixture
async def own_harness(own_time_skipping: WorkflowEnvironment) -> AsyncIterator[WorkflowHarness]:
    """The harness on the module's own server, whose clock is that of this machine until the module skips time."""
    async with _hosted(WorkflowHarness(own_time_skipping.client, FakeActivities())) as harness:
        yield harness


@pytest.fixture
async def real_time_harness(client: Client) -> AsyncIterator[WorkflowHarness]:
    """The harness on a real Temporal server, for runs that are cancelled while one of their timers may fire.

    The time-skipping server refuses a workflow task that cancels a timer which fired meanwhile, and never sends it
    again (https://github.com/temporalio/sdk-java/issues/3088).
    """
    async with _hosted(WorkflowHarness(client, FakeActivities())) as harness:
        yield harness


@asynccontextmanager
async def _hosted(harness: WorkflowHarness) -> AsyncIterator[WorkflowHarness]:
    async with Worker(
        harness.client,
        task_queue=harness.queue,
        workflows=[WriteAuditPublish],
        workflow_runner=sandbox(),
        activities=harness.fakes.activities(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    ):
        yield harness


@pytest.fixture
async def zone(client: Client) -> AsyncIterator[Zone]:
    """A landing zone whose listings and runs the test answers."""
    zone = Zone(client)
    reporting = ReportArrivalRunsActivity(client, zone.name, zone.name, 100)
    async with Worker(
        client,
        task_queue=zone.name,
        workflows=[LandingZone, RunOfATest, ArrivalRuns],
        workflow_runner=sandbox(),
        interceptors=[ErrorMapping()],
        activities=[zone.collect, zone.read, zone.split, zone.notify, zone.finish, reporting.report_arrival_runs],
    ):
        yield zone
        with suppress(RPCError):  # the test has ended it
            await zone.handle.terminate()
        with suppress(RPCError):  # the test has nothing to start
            await client.get_workflow_handle(arrival_runs_id(zone.name, zone.name)).terminate()


@pytest.fixture
async def backfills(client: Client) -> AsyncIterator[Backfills]:
    """Backfills of fake starts, whose worker runs."""
    backfills = Backfills(client)
    async with backfills.worker():
        yield backfills


@pytest.fixture
async def zones(client: Client) -> AsyncIterator[NotifiedZones]:
    """Landing zones that notifications concern."""
    async with notified_zones(client) as zones:
        yield zones
