"""Background processes of the local stack, identified by process id and start time."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from devstack.errors import StackError
from sluice.base_model import StrictModel

_POLL = 0.1
START_LIMIT = 300.0
"""Maximum time for the start of a service, in seconds. On a busy machine, a worker needs a minute."""


class Daemon(StrictModel):
    """A background process. Its start time distinguishes it from a later process with the same id."""

    name: str
    pid: int
    born: float
    log: str
    log_from: int = 0
    """Size of the log, in bytes, when this process started. Earlier processes wrote the part before."""

    def output(self) -> str:
        """Return the output that this process has written to its log."""
        with Path(self.log).open("rb") as file:
            file.seek(self.log_from)
            return file.read().decode(errors="replace")

    def alive(self) -> bool:
        """Return True while the process is running."""
        try:
            process = psutil.Process(self.pid)
            return process.create_time() == self.born and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def stop(self, patience: float = 20.0) -> None:
        """Terminate the process; kill it if it is still running after `patience` seconds."""
        if not self.alive():
            return
        process = psutil.Process(self.pid)
        process.terminate()
        try:
            process.wait(patience)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(patience)


def start(name: str, command: list[str], environment: dict[str, str], log: Path) -> Daemon:
    """Start a process in the background, with its output in a log file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        log_from = output.tell()
        child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Daemon(
        name=name, pid=child.pid, born=psutil.Process(child.pid).create_time(), log=str(log), log_from=log_from
    )


def wait_until(ready: Callable[[], bool], daemon: Daemon, patience: float = START_LIMIT) -> None:
    """Wait until a process is ready for work.

    Raises:
        StackError: the process ended, or took more than `patience` seconds. The message has the end of its log.
    """
    deadline = time.monotonic() + patience
    while not ready():
        if not daemon.alive() or time.monotonic() > deadline:
            ended = "ended" if not daemon.alive() else f"was not ready within {patience:.0f} s"
            tail = "\n".join(daemon.output().splitlines()[-12:])
            raise StackError(f"{daemon.name} {ended}. Its log, {daemon.log}, ends with:\n{tail}")
        time.sleep(_POLL)
