"""A small program that stands between the worker and Spark, so that Spark never outlives the worker.

    python guard.py COMMAND...

It runs the command in its own session and watches its standard input, which the worker holds open.
When that closes, because the worker closed it or died by whatever means, every process of the session
is ended. It exits with the command's code, after the last process of the session is gone.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

import psutil

_GRACE = 2.0
"""Seconds between asking Spark to end and making it."""
_LOOK = 0.2
_LIFE_LINE = 0
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15


def main(command: list[str]) -> int:
    """Run the command until it ends or the worker is gone."""
    guard = os.getpid()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=lambda: die_with_parent(guard))  # noqa: PLW1509
    return supervise_child(child.pid)


def supervise_child(child: int) -> int:
    """Wait for a child of this session's leader, or end it when the worker is gone; return its code, as a shell has it.

    Nothing of the session is left afterwards.
    """
    ended, session = _end_of(child), os.getsid(0)
    while not (status := os.waitpid(child, os.WNOHANG))[0]:
        if _worker_is_gone(ended):
            end_session(session, signal.SIGTERM, _GRACE)
            end_session(session, signal.SIGKILL, _GRACE)
            status = os.waitpid(child, 0)
            break
    end_session(session, signal.SIGKILL, _GRACE)
    code = os.waitstatus_to_exitcode(status[1])
    return code if code >= 0 else 128 - code


def die_with_parent(guard: int) -> None:
    """Ask Linux to kill this process when its guard is killed; elsewhere the worker sees to it."""
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:  # it was killed before this was asked
        os.kill(os.getpid(), signal.SIGKILL)


def set_process_name(name: str) -> None:
    """Give this process a name for `ps` and `top`, where the system has that."""
    _control(_PR_SET_NAME, name.encode())


def end_session(session: int, how: int, patience: float) -> None:
    """Signal every other process of a session and wait, at most `patience` seconds, until they are gone.

    Spark's Python workers make process groups of their own, so the group is not enough.
    """
    deadline = time.monotonic() + patience
    signalled: set[int] = set()
    while (members := _members(session)) and time.monotonic() < deadline:
        for pid in members - signalled:
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                continue
        signalled |= members
        time.sleep(0.05)


def _members(session: int) -> set[int]:
    found = set()
    for pid in psutil.pids():
        try:
            if pid != os.getpid() and os.getsid(pid) == session and _alive(pid):
                found.add(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _end_of(pid: int) -> list[int]:
    """Return what becomes readable when a process ends, where the system has that: Linux, from 5.3 on."""
    try:
        return [os.pidfd_open(pid)]
    except (AttributeError, OSError):
        return []


def _worker_is_gone(ended: list[int]) -> bool:
    """Wait until the worker goes or the command ends, or for a moment; return whether it is the worker."""
    readable, _, _ = select.select([_LIFE_LINE, *ended], [], [], _LOOK)
    return _LIFE_LINE in readable and not os.read(_LIFE_LINE, 1)


def _control(option: int, value: "int | bytes") -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
