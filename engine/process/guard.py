"""The guard: a small process between the worker and a Spark job, so that no job outlives its worker.

    python guard.py COMMAND...

The guard runs the command in a session of its own and watches its standard input, a pipe that the worker keeps open.
The pipe closes when the worker closes it, or dies by any means, `kill -9` included. The guard then ends every process
of the session. The process group is not enough: Spark's Python workers have process groups of their own. On Linux the
kernel kills the command when the guard is killed. The guard exits with the command's code after the last process of
the session has ended, so a job that was reported as ended no longer writes.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil

_GRACE_PERIOD = 2.0
"""Time between SIGTERM and SIGKILL, in seconds."""
_POLL_INTERVAL = 0.2
_WORKER_PIPE = 0
"""File descriptor of standard input: the pipe that the worker keeps open."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NAME = 1, 4, 15


def main(command: list[str]) -> int:
    """Run the command until it ends or the worker dies; return its exit code."""
    guard = os.getpid()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=lambda: die_with_parent(guard))  # noqa: PLW1509
    return supervise_child(child.pid)


def supervise_child(child: int) -> int:
    """Wait for a child process, or end it when the worker dies; return its exit code in the form of a shell.

    This process leads the session. Afterwards it is the only process left in the session.
    """
    pidfds, session = open_pidfd(child), os.getsid(0)
    while not (status := os.waitpid(child, os.WNOHANG))[0]:
        if _worker_closed_pipe(pidfds):
            end_session(session, signal.SIGTERM, _GRACE_PERIOD)
            end_session(session, signal.SIGKILL, _GRACE_PERIOD)
            status = os.waitpid(child, 0)
            break
    end_session(session, signal.SIGKILL, _GRACE_PERIOD)
    code = os.waitstatus_to_exitcode(status[1])
    return code if code >= 0 else 128 - code


def die_with_parent(guard: int) -> None:
    """Make Linux kill this process when its guard is killed. On other systems the worker ends this process."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:  # the guard was killed before this call
        os.kill(os.getpid(), signal.SIGKILL)


def set_process_name(name: str) -> None:
    """Name this process for `ps` and `top`, on Linux."""
    _prctl(_PR_SET_NAME, name.encode())


def hide_process() -> None:
    """Prevent other processes of the same user from reading this process's memory and environment, on Linux."""
    _prctl(_PR_SET_DUMPABLE, 0)


def end_session(session: int, signal_number: int, timeout: float) -> None:
    """Signal every other process of a session; wait, at most `timeout` seconds, until all have ended."""
    end_processes(lambda: _other_members(session), signal_number, timeout)


def end_processes(find: Callable[[], set[int]], signal_number: int, timeout: float) -> None:
    """Signal each process that `find` returns; wait, at most `timeout` seconds, until it returns none."""
    deadline = time.monotonic() + timeout
    signalled: set[int] = set()
    while (processes := find()) and time.monotonic() < deadline:
        for pid in processes - signalled:
            try:
                os.kill(pid, signal_number)
            except ProcessLookupError:
                continue
        signalled |= processes
        time.sleep(0.05)


def _other_members(session: int) -> set[int]:
    members = set()
    for pid in psutil.pids():
        try:
            if pid != os.getpid() and os.getsid(pid) == session and is_running(pid):
                members.add(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return members


def is_running(pid: int) -> bool:
    """Return True if a process exists and has not ended. A zombie has ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def open_pidfd(pid: int) -> list[int]:
    """Return a file descriptor that becomes readable when a process ends, or an empty list without pidfds.

    Linux has pidfds from version 5.3 on.
    """
    try:
        return [os.pidfd_open(pid)]
    except (AttributeError, OSError):
        return []


def _worker_closed_pipe(pidfds: list[int]) -> bool:
    """Wait briefly until the worker closes its pipe or the command ends; return True if the pipe is closed."""
    readable, _, _ = select.select([_WORKER_PIPE, *pidfds], [], [], _POLL_INTERVAL)
    return _WORKER_PIPE in readable and not os.read(_WORKER_PIPE, 1)


def _prctl(option: int, value: "int | bytes") -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
