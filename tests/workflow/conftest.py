"""Temporal's time-skipping server, and a worker whose activities are fakes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.testservice.v1 import LockTimeSkippingRequest, UnlockTimeSkippingRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, TestService
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.arrivals.report_arrival_runs import ReportArrivalRunsActivity
from activities.errors import ErrorMapping
from engine.spark.java import find_java
from sluice.contracts.arrival_runs import arrival_runs_id
from tests.harness.backfill_workflow import Backfills
from tests.harness.notified_zone import NotifiedZones, notified_zones
from tests.harness.waiting import LIMIT
from tests.harness.workflow import FakeActivities, WorkflowHarness
from tests.harness.zone_workflow import RunOfATest, Zone
from workflows.arrivals.arrival_runs import ArrivalRuns
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

_STUCK, _FREED = 60.0, 0.5
"""Seconds without a result before the time is unlocked, more than any test's activity lasts; seconds of the unlock."""


@asynccontextmanager
async def _time_skipping(home: Path, folder: Path) -> AsyncIterator[WorkflowEnvironment]:
    """Start Temporal's time-skipping server, from the jars of the set-up."""
    wrapper = folder / "test-server"
    java, jars = find_java() / "bin" / "java", home / "jars" / "timeskip" / "*"
    wrapper.write_text(f'#!/bin/sh\nexec "{java}" -cp "{jars}" io.temporal.testserver.TestServer "$@"\n')
    wrapper.chmod(0o755)
    environment = await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter,
        test_server_existing_path=str(wrapper),
        test_server_startup_timeout=timedelta(seconds=LIMIT),  # by default 5 s, which Java alone may need
    )
    async with environment:
        _free_stuck_time(environment)
        yield environment


def _free_stuck_time(environment: WorkflowEnvironment) -> None:
    """Make the server skip time again if it has stopped while a test awaits a result.

    In rare cases, the server keeps a lock on the time after all activities have ended, so that a timer of a day lasts a
    day. One more unlock, which is taken back after a moment, fixes that.
    """
    unlocked = environment.time_skipping_unlocked  # type: ignore[attr-defined]  # of the environment that skips time

    @asynccontextmanager
    async def unlocked_again() -> AsyncIterator[None]:
        async with unlocked():
            freeing = asyncio.create_task(_free(environment.client.test_service))
            try:
                yield
            finally:
                freeing.cancel()
                await asyncio.gather(freeing, return_exceptions=True)

    environment.time_skipping_unlocked = unlocked_again  # type: ignore[attr-defined]


async def _free(service: TestService) -> None:
    while True:
        await asyncio.sleep(_STUCK)
        with suppress(RPCError):  # the server refuses an unlock if nothing is locked
            await service.unlock_time_skipping(UnlockTimeSkippingRequest())
            try:
                await asyncio.sleep(_FREED)
            finally:
                await service.lock_time_skipping(LockTimeSkippingRequest())


@pytest.fixture(scope="session")
async def time_skipping(home: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkflowEnvironment]:
    """The session's time-skipping server. Tests must not leave a workflow open in it: that would stop the time."""
    async with _time_skipping(home, tmp_path_factory.mktemp("server")) as environment:
        yield environment


@pytest.fixture(scope="module")
async def own_time_skipping(home: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkflowEnvironment]:
    """A time-skipping server of one module, for tests that leave workflows open."""
    async with _time_skipping(home, tmp_path_factory.mktemp("server")) as environment:
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
