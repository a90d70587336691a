"""Worker processes that tests start and kill, the processes of a run, and a wait for a condition."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from devstack.stack import ROOT
from runtime.telemetry import WORKER_READY
from tests.harness.forked import ForkedProcess
from tests.harness.waiting import LIMIT


class WorkerProcess:
    """A worker of the test's own, to be killed.

    Args:
        prefix: the command to start the program `worker.py` with. Without it, the worker is forked, which starts in a
            tenth of the time.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path, prefix: Sequence[str] = ()) -> None:
        self.log = folder / f"worker-{time.monotonic_ns()}.log"
        variables = {**os.environ, **environment}
        self.process: ForkedProcess | subprocess.Popen[bytes]
        if prefix:
            with self.log.open("wb") as log:
                command = [*prefix, sys.executable, str(ROOT / "worker.py")]
                self.process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log)
        else:
            self.log.touch()
            self.process = ForkedProcess(_worker, folder, variables, self.log, self.log)
        wait_for(lambda: WORKER_READY in self.log.read_text(), self.log.read_text)

    def kill(self) -> None:
        """Kill the worker with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End the worker by SIGTERM, and wait for its end."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(180)


def _worker() -> int:
    from worker import main  # noqa: PLC0415  # the server of forked processes has imported it

    return main()


def spark_processes(run_id: str, program: str = "") -> list[int]:
    """Return the ids of all processes of a run, including the guard, or only those of a named program."""
    working = []
    for process in psutil.process_iter():
        try:
            command = " ".join(process.cmdline())
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue
        if run_id in command and program in command and alive and process.pid != os.getpid():
            working.append(process.pid)
    return working


def wait_for(
    condition: Callable[[], object],
    otherwise: Callable[[], str] = lambda: "it did not become true",
    limit: float = LIMIT,
    pause: float = 0.1,
) -> None:
    """Wait until a condition is true. After `limit` seconds, fail with the result of `otherwise`.

    Args:
        pause: seconds between two evaluations. A condition that runs a command takes a core as long as it is evaluated.
    """
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"waited {limit:g} s: {otherwise()}"
        time.sleep(pause)
