"""A pytest session in a process of its own, to be interrupted or killed while its test runs."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from devstack.stack import ROOT
from tests.harness.processes import wait_for
from tests.harness.session_guard import MARK, started_by

READY = """
    from pathlib import Path
    Path("ready").write_text(f"{os.getpid()} {os.environ['STARTED_BY_TESTS']}")
    time.sleep(600 * (not Path("goes on").exists()))
"""
"""The last lines of the nested test: report that it runs, and wait."""


def _take_interrupts() -> None:
    """Let Ctrl-C interrupt this process. Background processes of a shell, and their children, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class NestedSession:
    """A session with one test in a folder, in the given number of processes. Its test has begun."""

    def __init__(self, folder: Path, conftest: str, test: str, processes: int = 1) -> None:
        (folder / "conftest.py").write_text(conftest)
        (folder / "test_nested.py").write_text(test)
        ready, log = folder / "ready", folder / "output"
        command = [sys.executable, "-m", "pytest", "-n", str(processes), "--max-worker-restart=0", "test_nested.py"]
        plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
        environment = {**os.environ, **plugins, "PYTHONPATH": str(ROOT)}
        with log.open("w") as output:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_take_interrupts,  # noqa: PLW1509  # it does nothing that a thread could hold up
            )
        wait_for(lambda: (ready.exists() and ready.read_text()) or self.process.poll() is not None, log.read_text)
        assert ready.exists(), log.read_text()
        pid, marks = ready.read_text().split()
        self.test_process = int(pid)
        """The process that runs the test: a process of xdist if there are any."""
        before = os.environ.get(MARK, "").split("/")
        self._mark = next(mark for mark in marks.split("/") if mark not in before)

    @property
    def started(self) -> set[int]:
        """The running processes that the session started."""
        return started_by(self._mark)

    def wait_until_nothing_is_left(self) -> None:
        """Wait until everything that the session started has ended."""
        wait_for(lambda: not self.started, lambda: f"these run on: {self.started}")

    def interrupt(self) -> int:
        """Press Ctrl-C until the session ends, as a person does; return its exit code.

        Pytest may lose the first Ctrl-C while xdist starts.
        """
        for _ in range(10):
            os.killpg(self.process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                return self.process.wait(30)
        raise AssertionError("the session ignores Ctrl-C")

    def stop(self) -> None:
        """End the session if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
