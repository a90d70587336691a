"""Files land while workers and services are killed: each row is on main exactly once."""

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from devstack.stack import Stack
from runtime.installation import with_known_installation
from sluice.contracts.arrivals import landing_zone_id
from sluice.settings import read_settings
from tests.harness.kills import kill_service, repeatedly
from tests.harness.lake import LakeReader
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.rides import ROWS, assert_each_once, write_month
from tests.harness.system import SystemHarness
from tests.harness.temporal_thread import TEMPORAL

NAME, TABLE = "rides", "city.rides"


class Landing:
    """A landing zone of monthly files, and the worker that looks at it, which is killed and started again."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder / "landing"
        self._home, self._environment = folder, environment
        self._worker = WorkerProcess(environment, folder)
        self.system, self.lake = SystemHarness(folder, environment), LakeReader(environment)
        self.kills = 0

    def deploy(self, arrival: str) -> None:
        """Deploy the zone with these keys of its arrival."""
        pipelines = self._home / "pipelines"
        for each in (self.folder, pipelines):
            each.mkdir()
        (pipelines / "rides.yml").write_text(
            f"name: {NAME}\nwrite: {{source: {{format: parquet}}}}\n"
            f"tables: {{{TABLE}: {{checks: [not_null: [ride_id], unique: [ride_id], "
            f"accepted_range: {{column: ride_id, max: 1000000}}]}}}}\n"
            f"arrival: {{from: {self.folder}, {arrival}}}\n"
        )
        deployed = self.system.command("deploy", str(pipelines), "--yes")
        assert deployed.code == 0, deployed.err

    def kill_worker(self) -> None:
        """Kill the worker with SIGKILL, and start another one."""
        self.kills += 1
        self._worker.kill()
        self._worker = WorkerProcess(self._environment, self._home)

    def notify(self, times: int = 3) -> None:
        """Send a notification so many times, as messengers do."""

        async def send() -> None:
            client = await TEMPORAL.client(self._environment)
            settings = with_known_installation(read_settings(self._environment))
            zone = client.get_workflow_handle(landing_zone_id(settings.sluice_installation, NAME))
            for _ in range(times):
                await zone.signal("look")

        TEMPORAL.run(send())

    def shown(self) -> dict[str, Any]:
        """Return what `arrivals` shows, as soon as a worker answers."""
        shown: dict[str, Any] = {}

        def answered() -> bool:
            output = self.system.command("arrivals", NAME, "--json", "--limit", "500")
            if output.code == 0:
                shown.update(output.json)
            return output.code == 0

        wait_for(answered)
        return shown

    def wait_until_loaded(self, files: int) -> None:
        """Wait until so many files are in the zone, and each is loaded or left out for a reason that holds for good."""
        wait_for(lambda: self._is_done(files), lambda: str(self.shown()), limit=900)

    def _is_done(self, files: int) -> bool:
        shown = self.shown()
        return len(shown["files"]) == files and {each["status"] for each in shown["files"]} <= {"loaded", "ignored"}

    def close(self) -> None:
        """Remove the zone, and end the worker: other tests of this process have the same server."""
        (self._home / "pipelines" / f"{NAME}.yml").unlink(missing_ok=True)
        removed = self.system.command("deploy", str(self._home / "pipelines"), "--yes")
        self._worker.stop()
        assert removed.code == 0, removed.err


@pytest.mark.warm
def test_a_worker_is_killed_while_files_arrive(
    stack: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The worker is killed while files arrive, settle and are loaded: each row is on main once."""
    queue = f"arrivals-{tmp_path.name}"
    landing = Landing(tmp_path, {**os.environ, **stack, "SLUICE_TASK_QUEUE": queue, "SPARK_ENGINE": "connect"})
    try:
        landing.deploy("settle: 2s, look: 2s, batch: {files: 3}")
        write_month(landing.folder, 0, spoilt=True)
        write_month(landing.folder, 0)  # overwritten while it settles
        write_month(landing.folder, 13)
        wait_for(lambda: any(each["state"] == "running" for each in landing.shown()["batches"]))
        landing.kill_worker()
        for month in (1, 14, 15):
            write_month(landing.folder, month)
        write_month(landing.folder, 13, name="again.parquet")
        landing.notify()
        landing.wait_until_loaded(6)
        assert_each_once(landing.lake.rows(TABLE), [0, 1, 13, 14, 15])
    finally:
        landing.close()


@pytest.mark.matrix
@pytest.mark.parametrize("seed", [1, 2])
def test_three_years_of_monthly_files_while_everything_is_killed(seed: int, own_stack: Stack, tmp_path: Path) -> None:
    """Nessie, Temporal and the worker are killed while 36 monthly files arrive one by one, at once, and again."""
    draw = random.Random(seed)
    more = {"SLUICE_HEARTBEAT_TIMEOUT": "5", "SLUICE_ACTIVITY_TIMEOUT": "8", "SPARK_ENGINE": "connect"}
    environment = {**os.environ, **own_stack.up(with_worker=False), "SLUICE_HOME": str(own_stack.home), **more}
    landing = Landing(tmp_path, environment)

    def kill() -> None:
        victim = draw.choice(["nessie", "temporal", "worker", "worker"])
        if victim == "worker":
            landing.kill_worker()
            return
        landing.kills += 1
        kill_service(own_stack, victim)

    try:
        landing.deploy("settle: 2s, look: 3s, at_once: 2, batch: {files: 5, wait: 10s}, overwritten: ignore")
        with repeatedly(kill, draw, 6, 16):
            for month in draw.sample(range(12), 12):  # one by one, some overwritten while they settle
                if draw.random() < 0.3:
                    write_month(landing.folder, month, spoilt=True)
                    time.sleep(draw.uniform(0, 1))
                write_month(landing.folder, month)
                time.sleep(draw.uniform(0, 6))
            for month in range(12, 36):  # at once
                write_month(landing.folder, month)
            time.sleep(30)
            for month in range(36):  # all of them again, some under the names that they have
                write_month(landing.folder, month, name=f"again-{month}.parquet" if month % 2 else "")
            time.sleep(20)
        landing.notify()
        landing.wait_until_loaded(36 + 18)
        rows = landing.lake.rows(TABLE)
        assert_each_once(rows, range(36))
        assert len(rows) == 36 * ROWS and landing.kills >= 4, landing.kills
        for month in (3, 30):  # overwritten after they were loaded
            write_month(landing.folder, month, spoilt=True)
        landing.notify()
        wait_for(lambda: sum(each["status"] == "ignored" for each in landing.shown()["files"]) == 2)
        assert_each_once(landing.lake.rows(TABLE), range(36))
        wait_for(lambda: not landing.lake.branches(), lambda: str(landing.lake.branches()))
    finally:
        landing.close()
