"""The fork server: each forked job is like a new process, has a guard, and is independent of the others."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from devstack.stack import ROOT
from engine.job import JobResult
from engine.process.fork_client import ForkServer
from engine.process.supervise import SupervisedProcess
from sluice.errors import ServiceUnavailable
from tests.harness.waiting import until

_JOBS = """\
import atexit, os, random, subprocess, sys, time
import numpy

def main(specification):
    atexit.register(print, "a handler at the end")
    print("input", repr(sys.stdin.read()), flush=True)
    if specification == "exit":
        sys.exit("a reason")
    if specification == "code":
        sys.exit(7)
    if specification == "raise":
        raise ValueError("broken")
    if specification == "wait":
        subprocess.Popen(["sleep", "600"], start_new_session=False)
        print("up", os.getpid(), flush=True)
        time.sleep(600)
    if specification == "draw":
        print("drawn", numpy.random.random(), random.random())
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ForkServer]:
    (tmp_path / "jobs_to_fork.py").write_text(_JOBS)
    fork_server = ForkServer(["jobs_to_fork"], tmp_path / "forks.log")
    yield fork_server
    await fork_server.close()


def variables(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"}


async def start(server: ForkServer, folder: Path, specification: str) -> SupervisedProcess:
    return await server.start_job(specification, variables(folder))


async def run(server: ForkServer, folder: Path, specification: str, log: str = "job.log") -> JobResult:
    job = await start(server, folder, specification)
    return await job.watch(folder / log, lambda _: None)


def named(name: str, folder: Path) -> list[psutil.Process]:
    """Return the test's processes of this name. Their command names this folder."""
    return [process for process in psutil.process_iter() if _is_of_test(process, name, folder)]


def _is_of_test(process: psutil.Process, name: str, folder: Path) -> bool:
    try:
        path = process.environ().get("PYTHONPATH", "") if process.name() == name else ""
        return path == variables(folder)["PYTHONPATH"] and _runs(process)
    except psutil.AccessDenied:
        return process.name() == name and _runs(process)  # a job hides its environment from everyone but root
    except psutil.Error:
        return False


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("specification", "code", "last"),
    [("", 0, ""), ("exit", 1, "a reason"), ("code", 7, ""), ("raise", 1, "ValueError: broken")],
)
async def test_a_job_ends_as_a_program_does(
    server: ForkServer, tmp_path: Path, specification: str, code: int, last: str
) -> None:
    ended = await run(server, tmp_path, specification)
    output = ended.log.read_text().splitlines()
    assert (ended.code, output[0]) == (code, "input ''"), output
    assert last in "\n".join(output)
    assert "a handler at the end" in output


async def test_jobs_are_new_to_each_other(server: ForkServer, tmp_path: Path) -> None:
    """They are forked from one state, but draw different random numbers."""
    ended = await asyncio.gather(*(run(server, tmp_path, "draw", f"{each}.log") for each in range(4)))
    assert [each.code for each in ended] == [0] * 4
    drawn = [each.log.read_text().split("drawn ")[1].split()[:2] for each in ended]
    assert len({first for first, _ in drawn}) == len({second for _, second in drawn}) == 4
    assert (
        len(named("sluice-forks", tmp_path)) == 1
        and not named("sluice-job", tmp_path)
        and not named("sluice-guard", tmp_path)
    )


async def test_a_cancel_ends_all_of_a_job(server: ForkServer, tmp_path: Path) -> None:
    job, other = await start(server, tmp_path, "wait"), await start(server, tmp_path, "wait")
    watching = asyncio.create_task(job.watch(tmp_path / "job.log", lambda _: None))
    beside = asyncio.create_task(other.watch(tmp_path / "other.log", lambda _: None))
    first, second = await _up(tmp_path / "job.log"), await _up(tmp_path / "other.log")
    sleeping = psutil.Process(first).children()
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert sleeping and not any(map(_runs, sleeping)) and not psutil.pid_exists(first)
    assert psutil.pid_exists(second) and not beside.done()
    os.kill(second, signal.SIGKILL)
    assert (await beside).code == 128 + signal.SIGKILL


async def test_a_killed_guard_takes_its_job_along(server: ForkServer, tmp_path: Path) -> None:
    job = await start(server, tmp_path, "wait")
    watching = asyncio.create_task(job.watch(tmp_path / "job.log", lambda _: None))
    works = psutil.Process(await _up(tmp_path / "job.log"))
    (guard,) = named("sluice-guard", tmp_path)
    guard.kill()
    assert (await watching).code == 128 + signal.SIGKILL
    assert not _runs(works)


async def test_a_dead_fork_server_is_replaced(server: ForkServer, tmp_path: Path) -> None:
    job = await start(server, tmp_path, "wait")
    watching = asyncio.create_task(job.watch(tmp_path / "job.log", lambda _: None))
    pid = await _up(tmp_path / "job.log")
    (dead,) = named("sluice-forks", tmp_path)
    dead.kill()
    assert (await run(server, tmp_path, "code", "next.log")).code == 7
    assert named("sluice-forks", tmp_path) != [dead] and psutil.pid_exists(pid)  # the running job continues
    await job.end()
    await watching


async def test_a_fork_server_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    server = ForkServer(["no_such_module"], tmp_path / "forks.log")
    with pytest.raises(ServiceUnavailable, match=r"cannot start a process: see .*forks\.log"):
        await start(server, tmp_path, "")
    assert "No module named 'no_such_module'" in (tmp_path / "forks.log").read_text()
    await server.close()


async def _up(log: Path) -> int:
    words: list[str] = []

    def is_up() -> bool:
        words[:] = log.read_text().split() if log.exists() else []
        return "up" in words and words[-1] != "up"

    await until(is_up, lambda: "the job did not start")
    return int(words[words.index("up") + 1])
