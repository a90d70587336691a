"""The fork server: a process with the imports of its jobs, which forks itself for each job.

    python fork_server.py SOCKET MODULE...

SOCKET is the file descriptor of a socket to the worker. The first module has a `main`, which gets the specification of
a job as text. The server imports the other modules so that jobs need not import them. For each job, the worker sends
one byte and four open files: the pipe that the guard reads, the output, a pipe for the guard's process id and the exit
code, and the specification. When the socket closes, the server starts no more jobs; the guards watch the running jobs.

A forked client starts a second or two sooner than one that imports everything itself (ADR 17).
"""

import atexit
import os
import sys

_exit_code = 1


def _exit_at_once() -> None:
    """End the process with its exit code, without Python's shutdown, in which gRPC's threads can hang."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_exit_code)


atexit.register(_exit_at_once)  # before any import registers a function: Python calls the first registered one last

# ruff: noqa: E402
import gc
import importlib
import signal
import socket
from pathlib import Path
from typing import TextIO

sys.path[:] = [path for path in sys.path if path != str(Path(__file__).resolve().parent)]

from engine.process.guard import die_with_parent, hide_process, set_process_name, supervise_child

_FILES = 4


def main(control: socket.socket, modules: list[str]) -> None:
    """Fork a guard and a job for each request; in the process of a job, run the job and return."""
    runner, *_ = [importlib.import_module(name) for name in modules]
    set_process_name("sluice-forks")
    hide_process()  # its environment may have the credentials of an object store
    gc.freeze()  # objects of this process live as long as it does: the collectors of jobs need not examine them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for guards: each reports its exit code to the worker
    specification = _serve(control)
    if specification is not None:
        with specification:
            text = specification.read()
        runner.main(text)


def _serve(control: socket.socket) -> TextIO | None:
    """Return the specification of a job in the process that runs the job, or None when the worker has ended."""
    while True:
        _, files, _, _ = socket.recv_fds(control, 1, _FILES)
        if len(files) < _FILES:
            return None
        if os.fork() == 0:
            control.close()
            return _fork_job(*files)
        for file in files:
            os.close(file)


def _fork_job(worker_pipe: int, output: int, exit_pipe: int, specification: int) -> TextIO:
    """Become the guard of a job, and fork the job. Return only in the process of the job."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate((worker_pipe, output, output)):
        os.dup2(file, number)
    os.close(worker_pipe)
    os.close(output)
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(guard)
        os.close(exit_pipe)
        _reset_process_state()
        return os.fdopen(specification)
    set_process_name("sluice-guard")
    os.close(specification)
    os.write(exit_pipe, f"{guard}\n".encode())
    os.write(exit_pipe, f"{supervise_child(child)}\n".encode())
    os._exit(0)


def _reset_process_state() -> None:
    """Give a forked process an empty input, a name, and random numbers of its own."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    set_process_name("sluice-job")
    hide_process()  # its memory contains its session's id, with which any other job could use the session
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # else every job would draw the same numbers; os.fork seeds Python's own generator


if __name__ == "__main__":
    try:
        main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
        _exit_code = 0
    except SystemExit as error:  # as in Python: None means success, a number is the exit code, a text means failure
        _exit_code = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise
