"""Worker processes that tests start and kill, the processes of a run, and waiting for something to become true."""

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
from tests.harness.waiting import LIMIT


class WorkerProcess:
    """A worker of the test's own, to be killed."""

    def __init__(self, environment: Mapping[str, str], folder: Path, prefix: Sequence[str] = ()) -> None:
        self.log = folder / f"worker-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, str(ROOT / "worker.py")],
                cwd=folder,
                env={**os.environ, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: WORKER_READY in self.log.read_text(), self.log.read_text)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end, and wait."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(180)


def spark_processes(run_id: str, program: str = "") -> list[int]:
    """Return the ids of all processes, the guard included, that work for a run; only those of a program, if named."""
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
) -> None:
    """Wait until a condition is true; fail after a limit in seconds, with what `otherwise` returns."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"waited {limit:g} s: {otherwise()}"
        time.sleep(0.1)
