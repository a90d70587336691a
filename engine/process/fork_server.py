"""A process that has imported what every job on Spark Connect needs, and forks itself for each job.

    python fork_server.py SOCKET MODULE...

SOCKET is the number of the worker's socket. The first module has a `main`, which gets a job's order as text; the
others are imported for the jobs' sake. Each byte on the socket brings four open files: the job's life line, which the
worker holds open, its output, where its guard says its id and how it ended, and the order. When the socket closes, no
more jobs are started; those that run have guards of their own.
"""

import atexit
import os
import sys

_status = 1


def _leave() -> None:
    """End the process by the status it has come to, without taking Python down: gRPC's threads can hang in that."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status)


atexit.register(_leave)  # before any import registers something: what is registered first is called last

# ruff: noqa: E402
import gc
import importlib
import signal
import socket
from pathlib import Path
from typing import TextIO

sys.path[:] = [path for path in sys.path if path != str(Path(__file__).resolve().parent)]

from engine.process.guard import die_with_parent, set_process_name, supervise_child

_FILES = 4


def main(control: socket.socket, modules: list[str]) -> None:
    """Fork a guard and a job for each that is asked for; it is only in such a job that this returns."""
    runner, *_ = [importlib.import_module(name) for name in modules]
    set_process_name("sluice-forks")
    gc.freeze()  # what is here now is here for good: no job needs to look through it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a guard here: it tells the worker its end itself
    order = _serve(control)
    if order is not None:
        with order:
            text = order.read()
        runner.main(text)


def _serve(control: socket.socket) -> TextIO | None:
    """Return the order of a job in the process that is to do it, and nothing when the worker is gone."""
    while True:
        _, files, _, _ = socket.recv_fds(control, 1, _FILES)
        if len(files) < _FILES:
            return None
        if os.fork() == 0:
            control.close()
            return _begin(*files)
        for file in files:
            os.close(file)


def _begin(life_line: int, output: int, end: int, order: int) -> TextIO:
    """Become the guard of a job; return in the job alone."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate((life_line, output, output)):
        os.dup2(file, number)
    os.close(life_line)
    os.close(output)
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(guard)
        os.close(end)
        _renew()
        return os.fdopen(order)
    set_process_name("sluice-guard")
    os.close(order)
    os.write(end, f"{guard}\n".encode())
    os.write(end, f"{supervise_child(child)}\n".encode())
    os._exit(0)


def _renew() -> None:
    """Make a forked process as good as a new one."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    set_process_name("sluice-job")
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # else every job would draw the same numbers; Python's own generator sees to itself


if __name__ == "__main__":
    try:
        main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
        _status = 0
    except SystemExit as error:  # as Python reads it: nothing is success, a number is itself, a text is a failure
        _status = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise
