"""A soak: runs go on while Temporal, Nessie and workers are killed at random; then the checker looks.

python -m tests.faults.soak --minutes 30 [--seed N]
"""

import os
import random
import signal
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer
from temporalio.service import RPCError

from devstack.stack import Stack
from sluice.errors import SluiceError
from tests.harness.faults import FaultHarness
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import link_tools

_AT_ONCE = 4
_TABLES = 3
_VICTIMS = ("nessie", "temporal", "worker", "worker")


class Soak:
    """A stack of its own, runs under way, and what was done to them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._draw = random.Random(seed)
        self._home = folder / "home"
        self._home.mkdir()
        link_tools(self._home)
        self.stack = Stack(self._home, os.environ)
        variables = {**self.stack.up(with_worker=False), "SLUICE_HOME": str(self._home)}
        self.faults = FaultHarness(variables, folder, "soak")
        self._worker: WorkerProcess = self.faults.start_worker()
        self.kills: dict[str, int] = {}
        self.results: list[dict[str, Any]] = []

    def run(self, minutes: float) -> list[str]:
        """Keep runs going, break things, let everything end; return what does not hold."""
        end = time.monotonic() + minutes * 60
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            under_way: list[Future[dict[str, Any]]] = []
            number = 0
            next_kill = time.monotonic() + 15
            while time.monotonic() < end:
                under_way = self._harvest(under_way)
                while len(under_way) < _AT_ONCE:
                    under_way.append(pool.submit(self._one, number))
                    number += 1
                if time.monotonic() > next_kill:
                    self._kill(self._draw.choice(_VICTIMS))
                    next_kill = time.monotonic() + self._draw.uniform(15, 45)
                time.sleep(0.5)
            for each in under_way:
                self.results.append(each.result())
        kept = [result["branch"] for result in self.results if result["outcome"] != "published" and result["branch"]]
        return self.faults.problems(self.results, kept)

    def _harvest(self, under_way: list[Future[dict[str, Any]]]) -> list[Future[dict[str, Any]]]:
        self.results += [each.result() for each in under_way if each.done()]
        return [each for each in under_way if not each.done()]

    def _one(self, number: int) -> dict[str, Any]:
        """Run one to its end, however often Temporal is away meanwhile."""
        name = f"soak-{number}"
        run = self._patiently(lambda: self.faults.start_tagged(name, f"t.soak_{number % _TABLES}", rows=5, attempts=12))
        return dict(self._patiently(lambda: _outcome(self.faults.result(run))))

    def _patiently(self, call: Any) -> Any:
        for _ in range(60):
            try:
                return call()
            except (AssertionError, KeyError, ValueError, RPCError, SluiceError):
                time.sleep(2)
        raise AssertionError("Temporal did not come back")

    def _kill(self, victim: str) -> None:
        self.kills[victim] = self.kills.get(victim, 0) + 1
        if victim == "worker":
            self._worker.kill()
            self._worker = self.faults.start_worker()
            return
        (daemon,) = (each for each in self.stack.daemons() if each.name == victim)
        os.kill(daemon.pid, signal.SIGKILL)
        wait_for(lambda: not daemon.alive())
        time.sleep(self._draw.uniform(0, 5))
        self.stack.up(with_worker=False)
        if self._worker.process.poll() is not None:
            self._worker = self.faults.start_worker()

    def end(self) -> None:
        """Stop everything."""
        self.faults.close()
        self.stack.down()


def _outcome(result: dict[str, Any]) -> dict[str, Any]:
    if result.get("outcome") is None:
        raise ValueError(result)
    return result


def main(
    minutes: Annotated[float, typer.Option(help="How long.", min=0.5)] = 30,
    seed: Annotated[
        int | None, typer.Option(help="What draws the victims; printed, so that it can be repeated.")
    ] = None,
) -> None:
    """Run a soak; leave with 1 if something does not hold, or fewer than nine of ten runs were published."""
    seed = random.SystemRandom().randrange(10**9) if seed is None else seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), seed)
        try:
            problems = soak.run(minutes)
        finally:
            soak.end()
    published = sum(result["outcome"] == "published" for result in soak.results)
    killed = ", ".join(f"{name} {count} times" for name, count in sorted(soak.kills.items()))
    print(f"{len(soak.results)} runs in {minutes:g} minutes, {published} published; killed: {killed}")
    for problem in problems:
        print(problem)
    for result in soak.results:
        if result["outcome"] != "published":
            print(f"{result['workflow_id']}: {result['outcome']}: {result['reason'][:200]}")
    sys.exit(bool(problems) or published < 0.9 * len(soak.results))


if __name__ == "__main__":
    typer.run(main)
