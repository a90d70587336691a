"""Processes of Sluice's programs, forked from a server that has imported the programs.

A new interpreter spends more processor time on the imports of a command or a worker than the command itself takes.
A forked process has the `/proc/PID/environ` and the command line of the server. A test that reads them starts the
program itself.
"""

import atexit
import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path

_SERVER = multiprocessing.get_context("forkserver")
_IMPORTED = ["tests.harness.forked_programs"]
_LOCK = threading.Lock()
"""Lock around the exit code: two threads that poll one process at once would both read the code from one pipe."""


def forked_pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool of forked processes. Its functions must be at the top of a module."""
    _SERVER.set_forkserver_preload(_IMPORTED)
    return ProcessPoolExecutor(processes, _SERVER)


class ForkedProcess:
    """A process that calls a function and ends with its exit code, with the `subprocess.Popen` methods that tests use.

    Args:
        main: a function at the top of a module, called without arguments.
        folder: the working directory.
        environment: all environment variables.
        out: the file to append standard output to.
        err: the file to append standard error to; it may be the same.
    """

    def __init__(
        self, main: Callable[[], object], folder: Path, environment: Mapping[str, str], out: Path, err: Path
    ) -> None:
        _SERVER.set_forkserver_preload(_IMPORTED)
        self._process = _SERVER.Process(target=_run, args=(main, folder, dict(environment), out, err), daemon=True)
        with _LOCK:
            self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        with _LOCK:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code.

        Raises:
            subprocess.TimeoutExpired: the process still runs after `timeout` seconds.
        """
        wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _run(main: Callable[[], object], folder: Path, environment: dict[str, str], out: Path, err: Path) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    for descriptor, file in enumerate((Path(os.devnull), out, err)):
        opened = os.open(file, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        code = main()
    finally:
        atexit._run_exitfuncs()  # a program runs these at its end, a forked process does not; they send traces
    raise SystemExit(code)
