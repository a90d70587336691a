"""The guard of a test process: when that process ends in any way, the guard ends everything that it started.

A process that runs tests adds a mark to its environment, which servers, workers, and their children inherit. The guard
is a small separate process that watches the test process. Fixtures still stop what they start; the guard is for a test
process that is interrupted or killed before they can. Spark jobs do not have the mark: they have a guard of their own
(`engine/process/guard.py`), which ends them with their worker.
"""

import os
import select
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from engine.process.guard import end_processes, is_running, open_pidfd

if TYPE_CHECKING:
    import pytest

MARK = "STARTED_BY_TESTS"
"""The variable with the marks of all test processes that a process descends from, outermost first."""
_GRACE_PERIOD = 1.0
"""Seconds between SIGTERM and SIGKILL."""
_TIMEOUT = 10.0
"""Maximum time for killed processes to end, in seconds."""
_PIPE = 0
_ROOT = Path(__file__).resolve().parents[2]


class SessionGuard:
    """The guard of this process: a pytest plugin, registered when pytest is configured."""

    def __init__(self) -> None:
        mark = uuid.uuid4().hex
        command = [sys.executable, "-m", "tests.harness.session_guard", mark, str(os.getpid())]
        self._process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={name: value for name, value in os.environ.items() if name != MARK},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C does not reach the guard
        )
        os.environ[MARK] = "/".join(filter(None, [os.environ.get(MARK, ""), mark]))

    def pytest_unconfigure(self, config: "pytest.Config") -> None:
        """End the processes that tests left running. A process of xdist leaves the wait to the session's guard."""
        self._let_go()
        if not hasattr(config, "workerinput"):
            self.close()

    def close(self) -> None:
        """End the running processes that this process started, and the guard."""
        self._let_go()
        self._process.wait(6 * _TIMEOUT)
        os.environ[MARK] = os.environ[MARK].rpartition("/")[0]

    def _let_go(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()


def started_by(mark: str) -> set[int]:
    """Return the running processes that have a mark."""
    return {pid for pid in psutil.pids() if mark in _marks(pid) and is_running(pid)}


def _marks(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).environ().get(MARK, "").split("/")
    except (psutil.Error, OSError):
        return []


def main(mark: str, test_process: int) -> None:
    """Wait until the test process closes its pipe or ends; then end the processes that it started."""
    select.select([_PIPE, *open_pidfd(test_process)], [], [])
    end_processes(lambda: started_by(mark), signal.SIGTERM, _GRACE_PERIOD)
    for _ in range(2):
        end_processes(lambda: started_by(mark), signal.SIGKILL, _TIMEOUT)
        time.sleep(0.1)  # a process that was just forked has the mark only after its exec


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
