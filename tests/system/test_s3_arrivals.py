"""A landing zone and a lake on S3 while the store is in trouble: each row is on main exactly once."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.object_store import upload
from devstack.stack import Stack
from runtime.store_access import CREDENTIALS_FILE
from sluice.contracts.arrivals import ZoneStatus
from tests.harness.lake import LakeReader
from tests.harness.object_store import stack_with_store
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.rides import ROWS, assert_each_once, write_month
from tests.harness.store_proxy import StoreFault, StoreProxy
from tests.harness.system import SystemHarness
from tests.harness.temporal_thread import TEMPORAL
from workflows.arrivals.landing_zone import LandingZone

SOURCE, TABLE = "/source/rides/", "city.rides"
PIPELINE = f"""
name: rides
write: {{source: {{format: parquet}}}}
tables:
  {TABLE}:
    checks: [not_null: [ride_id], unique: [ride_id]]
arrival: {{from: "s3:/{SOURCE}", settle: 1s, look: 2s}}
"""
EVERYTHING = ("list", "head", "read", "write")


class StoreZone:
    """A landing zone in a bucket. The worker reaches the store through a proxy; nobody receives its notifications."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._folder, self._stack = folder, stack.variables()
        access = json.loads(Path(self._stack[CREDENTIALS_FILE]).read_text())
        self.proxy = StoreProxy(access["AWS_ENDPOINT_URL_S3"])
        through = {"AWS_ENDPOINT_URL_S3": self.proxy.uri, "SLUICE_EVENTS_ADDRESS": "", "SPARK_ENGINE": "connect"}
        self._environment = {**os.environ, **self._stack, **access, **through, "SLUICE_HOME": str(stack.home)}
        self._worker = WorkerProcess(self._environment, folder)
        self.system = SystemHarness(folder, self._environment)
        self.lake = LakeReader.of_store(self._stack, access)
        self.loaded: list[int] = []

    def deploy(self) -> None:
        """Deploy the zone."""
        pipelines = self._folder / "pipelines"
        pipelines.mkdir()
        (pipelines / "rides.yml").write_text(PIPELINE)
        deployed = self.system.command("deploy", str(pipelines), "--yes")
        assert deployed.code == 0, deployed.err

    def load_despite(self, month: int, fault: StoreFault, seconds: float, kind: str, prefix: str) -> None:
        """Put a month. From the first request of a kind below a prefix on, the store fails for some seconds."""
        began: list[float] = []

        def rule(requested: str, path: str, _: int) -> StoreFault | None:
            if not began and requested == kind and path.startswith(prefix):
                began.append(time.monotonic())
            return fault if began and time.monotonic() < began[0] + seconds else None

        self.proxy.rule = rule
        file = write_month(self._folder, month)
        upload(self._stack, [(file, f"rides/{file.name}")])
        self.wait_until_loaded(month)
        assert began, f"there was no {kind} of {prefix}"

    def wait_until_loaded(self, month: int) -> None:
        """Wait until main has the rows of one more month; verify that it has each row once."""
        self.loaded.append(month)
        wait_for(lambda: len(self.lake.rows(TABLE)) >= ROWS * len(self.loaded), lambda: str(self.status()), 120)
        assert_each_once(self.lake.rows(TABLE), self.loaded)

    def status(self) -> ZoneStatus:
        """Return the status that the landing zone reports."""

        async def ask() -> ZoneStatus:
            client = await TEMPORAL.client(self._environment)
            (zone,) = [each async for each in client.list_workflows("WorkflowType = 'LandingZone'")]
            return await client.get_workflow_handle_for(LandingZone.run, zone.id).query(LandingZone.status)

        return TEMPORAL.run(ask())

    def wait_for_problem(self) -> str:
        """Wait until the zone reports a problem; return it."""
        wait_for(lambda: self.status().problem, lambda: str(self.status()), 60)
        return self.status().problem

    def close(self) -> None:
        """End the worker and the proxy."""
        self._worker.stop()
        self.proxy.stop()


@pytest.fixture
def zone(tmp_path: Path) -> Iterator[StoreZone]:
    """A landing zone in the source bucket of a stack of the test's own."""
    with stack_with_store(tmp_path) as stack:
        stack.up(with_worker=False)
        zone = StoreZone(stack, tmp_path)
        try:
            zone.deploy()
            yield zone
        finally:
            zone.close()


@pytest.mark.timeout(900)  # building the store may be necessary
def test_each_row_is_published_once_whatever_the_store_does(zone: StoreZone) -> None:
    # A listing finds each file: nobody receives the store's notifications.
    zone.load_despite(13, "SlowDown", 6, "write", "/lake/warehouse/city/")
    zone.load_despite(14, "NoSuchKey", 3, "read", SOURCE)  # the file was listed, and disappears before it is read

    wait_for(lambda: not zone.status().batches, lambda: str(zone.status()), 60)
    zone.proxy.break_all("ExpiredToken", *EVERYTHING)
    wait_for(lambda: "s3://source/rides/ cannot be read" in zone.status().problem, lambda: str(zone.status()), 60)
    problem = zone.status().problem
    assert "renew them" in problem, problem
    time.sleep(3)  # the zone lists its files again meanwhile
    assert zone.status().problem == problem, "people are notified of each other problem"
    zone.load_despite(15, "ExpiredToken", 5, "head", SOURCE)  # renewed, and expired again during a run
    zone.proxy.rule = lambda *_: None
    wait_for(lambda: not zone.status().batches, lambda: str(zone.status()), 60)
    wait_for(lambda: not zone.lake.branches(), lambda: str(zone.lake.branches()), 60)
