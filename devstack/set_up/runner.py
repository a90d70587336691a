"""Run the steps of the set-up: as many as possible at once, and none after a step has failed."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from devstack.set_up.step import Step, log_tail

_POLL = 0.1
_GRACE = 5.0
"""Time, in seconds, that a stopped step has to end before it is killed."""
_INTERRUPTED = -1
_PROMPT = "$ "


class State(Enum):
    """The states of a step."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass
class Progress:
    """The progress of a step."""

    step: Step
    log: Path
    state: State = State.WAITING
    started: float = 0.0
    ended: float = 0.0
    exit_code: int = 0
    command: int = 0
    process: subprocess.Popen[bytes] | None = None

    def seconds(self, now: float) -> float:
        """Return the run time of the step in seconds."""
        if self.state is State.WAITING:
            return 0.0
        return (self.ended or now) - self.started

    def detail(self) -> str:
        """Return the size of the step's download, and the last line of its log."""
        size = self.step.size(self.process.pid) if self.process else None
        fetched = f"{size / 1e6:,.0f} MB" if size else ""
        last = "".join(log_tail(self.log, 1)).strip()
        last = "" if last.startswith(_PROMPT) else last
        return ", ".join(part for part in (fetched, last) if part)


class View(Protocol):
    """A display of the progress."""

    def show(self, progress: list[Progress], now: float) -> None:
        """Show the progress of all steps. The runner calls this several times a second."""

    def close(self, progress: list[Progress], now: float) -> None:
        """Show the final state."""


class Runner:
    """A runner of steps in parallel, each with a log file of its own."""

    def __init__(
        self, steps: Iterable[Step], logs: Path, view: View, *, keep_open: int | None = None, poll: float = _POLL
    ) -> None:
        """Prepare to run.

        Args:
            steps: the steps to run. A needed step that is missing here counts as done.
            logs: the folder of the log files.
            view: the display of the progress.
            keep_open: a file descriptor that the steps' processes inherit, so that its lock outlives this process.
            poll: time between two checks of the processes, in seconds.
        """
        self._view, self._keep_open, self._poll = view, keep_open, poll
        self.progress = [Progress(step, logs / f"setup-{step.name}.log") for step in steps]

    def run(self) -> Progress | None:
        """Run all steps; return the first failed step, or None. No process is left behind, even after an error."""
        _make_folders(self.progress)
        try:
            while True:
                self._start_what_can_start()
                self._check_processes()
                failed = next(iter(self._in(State.FAILED)), None)
                if failed:
                    return failed
                if not self._in(State.RUNNING, State.WAITING):
                    return None
                self._view.show(self.progress, time.monotonic())
                time.sleep(self._poll)
        finally:
            self._stop_all()
            self._view.close(self.progress, time.monotonic())

    def _in(self, *states: State) -> list[Progress]:
        return [each for each in self.progress if each.state in states]

    def _start_what_can_start(self) -> None:
        unfinished = {each.step.name for each in self.progress if each.state is not State.DONE}
        for each in self._in(State.WAITING):
            if not unfinished.intersection(each.step.needs):
                each.started, each.state = time.monotonic(), State.RUNNING
                each.step.stamp.file.unlink(missing_ok=True)
                each.log.write_bytes(b"")
                self._start_command(each)

    def _start_command(self, each: Progress) -> None:
        command = each.step.commands[each.command]
        with each.log.open("ab") as log:
            log.write(f"{_PROMPT}{' '.join(command)}\n".encode())
            log.flush()
            try:
                each.process = subprocess.Popen(
                    command,
                    env={**os.environ, **each.step.environment()},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # so that Ctrl-C reaches only this process, which then ends the step
                    pass_fds=() if self._keep_open is None else (self._keep_open,),
                )
            except OSError as error:
                log.write(f"{error}\n".encode())
                _end(each, State.FAILED, 127)

    def _check_processes(self) -> None:
        for each in self._in(State.RUNNING):
            code = each.process.poll() if each.process else None
            if code is None:
                continue
            if code != 0:
                _end(each, State.FAILED, code)
            elif each.command + 1 < len(each.step.commands):
                each.command += 1
                self._start_command(each)
            else:
                self._finish(each)

    @staticmethod
    def _finish(each: Progress) -> None:
        output = each.step.output
        try:
            if output and not output.exists():
                raise FileNotFoundError(f"the commands succeeded, but {output} does not exist")
            each.step.stamp.write()
        except OSError as error:
            with suppress(OSError), each.log.open("a") as log:
                log.write(f"{error}\n")
            _end(each, State.FAILED, 1)
        else:
            _end(each, State.DONE, 0)

    def _stop_all(self) -> None:
        running = [each for each in self._in(State.RUNNING) if each.process]
        for each in running:
            _signal(each, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        for each in running:
            assert each.process
            with suppress(subprocess.TimeoutExpired):
                each.process.wait(max(0.0, deadline - time.monotonic()))
            _signal(each, signal.SIGKILL)  # also ends other processes of the group
            each.process.wait()
            _end(each, State.STOPPED, _INTERRUPTED)


def _end(each: Progress, state: State, code: int) -> None:
    each.state, each.exit_code, each.ended = state, code, time.monotonic()


def _signal(each: Progress, number: int) -> None:
    assert each.process
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(each.process.pid, number)


def _make_folders(progress: list[Progress]) -> None:
    for each in progress:
        each.log.parent.mkdir(parents=True, exist_ok=True)
