"""Many runs at once on two slots, while workers and services are killed and started again within seconds."""

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from temporalio.service import RPCError

from devstack.stack import Stack
from tests.harness.faults import FaultHarness
from tests.harness.kills import kill_service
from tests.harness.processes import WorkerProcess
from tests.harness.rest_stack import RestStack
from tests.harness.seeds import new_seed
from tests.harness.system import link_tools

_RUNS = 14
_TABLES = 3
_KILLED = ("worker",) * 5 + ("catalog",) * 3 + ("temporal",)
_SECONDS = 200
"""Time in which all kills happen, in seconds."""


class UnstableStack:
    """A stack of its own with one worker of two slots, and methods to break it."""

    def __init__(self, folder: Path, engine: str, catalog: str) -> None:
        self._rest = RestStack(folder) if catalog == "rest" else None
        home = folder / "home"
        if self._rest:
            self.stack, variables = self._rest.stack, self._rest.variables
        else:
            home.mkdir()
            link_tools(home)
            self.stack = Stack(home, os.environ)
            variables = self.stack.up(with_worker=False)
        variables = {**variables, "SLUICE_HOME": str(home), "SPARK_ENGINE": engine}
        self.faults = FaultHarness({**variables, "SPARK_SLOTS": "2"}, folder, "outages")
        self.worker: WorkerProcess = self.faults.start_worker()

    def kill(self, victim: str) -> None:
        """Kill a worker or a service, and start it again."""
        if victim == "worker":
            self.worker.kill()
        elif victim == "catalog" and self._rest:
            self._rest.server.kill()
            time.sleep(2)
            self._rest.server.start_again()
        else:
            kill_service(self.stack, "nessie" if victim == "catalog" else victim, away=2)
        if self.worker.process.poll() is not None:
            self.worker = self.faults.start_worker()

    def restart_worker(self) -> None:
        """End the worker gracefully, as a rolling restart does, and start it again."""
        self.worker.stop()
        self.worker = self.faults.start_worker()

    def result(self, run: str) -> dict[str, Any]:
        """Wait for a run's end, even if Temporal is unavailable meanwhile."""
        for _ in range(60):
            try:
                return self.faults.result(run)
            except (RPCError, OSError, RuntimeError):
                time.sleep(2)
        raise AssertionError(f"Temporal did not answer for {run}")

    def end(self) -> None:
        """Stop the workers and the stack."""
        self.faults.close()
        (self._rest or self.stack).down()


@pytest.fixture
def unstable(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[UnstableStack]:
    unstable = UnstableStack(tmp_path, *request.param)
    try:
        yield unstable
    finally:
        unstable.end()


def _check(unstable: UnstableStack, results: list[dict[str, Any]]) -> None:
    """Assert that every run was published and that the checker has no finding."""
    described = [(each["outcome"], each["attempts"], each["lost_attempts"], each["reason"]) for each in results]
    print(*described, sep="\n")
    assert {each["outcome"] for each in results} == {"published"}, described
    assert not unstable.faults.problems(results)


@pytest.mark.matrix
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    "unstable",
    [("submit", "nessie"), ("connect", "nessie"), ("connect", "rest")],
    ids=["submit", "connect", "connect-iceberg"],
    indirect=True,
)
def test_every_run_outlasts_nine_kills(unstable: UnstableStack) -> None:
    """Fourteen runs on two slots, nine kills of worker, catalog and Temporal in 200 s: all fourteen are published."""
    seed = new_seed()
    print(f"seed {seed}: SLUICE_SEED={seed} repeats it")
    draw = random.Random(seed)
    victims = draw.sample(_KILLED, len(_KILLED))
    moments = sorted(draw.uniform(10, _SECONDS) for _ in victims)
    runs = [unstable.faults.start_tagged(f"kills-{n}", f"t.kills_{n % _TABLES}", rows=5) for n in range(_RUNS)]
    begun = time.monotonic()
    with ThreadPoolExecutor(_RUNS) as pool:
        watched = [pool.submit(unstable.result, run) for run in runs]
        for moment, victim in zip(moments, victims, strict=True):
            time.sleep(max(0.0, begun + moment - time.monotonic()))
            unstable.kill(victim)
        results = [each.result() for each in watched]
    _check(unstable, results)


@pytest.mark.matrix
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("unstable", [("connect", "nessie")], ids=["connect"], indirect=True)
def test_rolling_restarts_cost_no_run(unstable: UnstableStack) -> None:
    """A worker is restarted again and again under a queue of runs that may fail once: every run is published."""
    runs = [
        unstable.faults.start_tagged(f"rolling-{n}", f"t.rolling_{n % _TABLES}", rows=5, attempts=1) for n in range(8)
    ]
    with ThreadPoolExecutor(len(runs)) as pool:
        watched = [pool.submit(unstable.result, run) for run in runs]
        for _ in range(3):
            time.sleep(12)
            unstable.restart_worker()
        results = [each.result() for each in watched]
    _check(unstable, results)
