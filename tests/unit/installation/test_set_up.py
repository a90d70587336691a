"""The steps of a set-up: parallel steps, second tries, failures, and interruptions."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devstack.set_up import __main__ as command
from devstack.set_up.runner import State
from devstack.set_up.step import Step, log_tail, steps_to_run
from devstack.stack import ROOT
from tests.harness.set_up_steps import python, run, step
from tests.harness.waiting import LIMIT


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


APPEND = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"
MEET = """
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.touch()
while not other.exists():
    time.sleep(0.01)
"""
SLEEP = "import time; print('asleep', flush=True); time.sleep(600)"


def test_a_step_runs_after_those_that_it_needs(tmp_path: Path) -> None:
    order = tmp_path / "order"
    steps = [
        step(tmp_path, "c", python(APPEND, order, "c"), needs=("b",)),
        step(tmp_path, "a", python(APPEND, order, "a1"), python(APPEND, order, "a2")),
        step(tmp_path, "b", python(APPEND, order, "b"), needs=("a",)),
    ]
    failed, states = run(tmp_path, *steps)
    assert failed is None and set(states.values()) == {State.DONE}
    assert order.read_text() == "a1a2bc"


def test_independent_steps_run_side_by_side(tmp_path: Path) -> None:
    """Each of the two steps ends only after the other has begun."""
    one, two = tmp_path / "one", tmp_path / "two"
    failed, states = run(
        tmp_path, step(tmp_path, "one", python(MEET, one, two)), step(tmp_path, "two", python(MEET, two, one))
    )
    assert failed is None and states == {"one": State.DONE, "two": State.DONE}


def test_a_failure_stops_the_others_and_keeps_what_is_done(tmp_path: Path) -> None:
    asleep = tmp_path / "logs" / "setup-slow.log"
    fail = "import pathlib, sys, time\nwhile 'asleep' not in pathlib.Path(sys.argv[1]).read_text():\n time.sleep(.01)\n"
    steps = [
        step(tmp_path, "first"),
        step(tmp_path, "slow", python(SLEEP)),
        step(tmp_path, "bad", python(f"{fail}sys.exit('no luck')", asleep), needs=("first",)),
        step(tmp_path, "after", needs=("bad",)),
    ]
    failed, states = run(tmp_path, *steps)
    assert failed and failed.step.name == "bad" and failed.exit_code == 1
    assert log_tail(failed.log, 1) == ["no luck"]
    assert states == {"first": State.DONE, "slow": State.STOPPED, "bad": State.FAILED, "after": State.WAITING}
    assert [each.name for each in steps_to_run(steps, ["after", "slow"])] == ["bad", "after", "slow"]


def test_a_second_try_repeats_only_what_is_missing(tmp_path: Path) -> None:
    output = tmp_path / "output"

    def steps(made: str = "1") -> list[Step]:
        needed = step(tmp_path, "needed")
        goal = step(tmp_path, "goal", python(APPEND, output, "x"), needs=("needed",), made=made)
        return [needed, Step(**{**goal.__dict__, "output": output})]

    def missing(made: str = "1") -> list[str]:
        return [each.name for each in steps_to_run(steps(made), ["goal"])]

    assert missing() == ["needed", "goal"]
    run(tmp_path, *steps())
    assert missing() == []
    assert missing(made="of another lock file") == ["goal"]
    (tmp_path / "needed.installed").unlink()
    assert missing() == [], "nothing needs it any more"
    output.unlink()
    assert missing() == ["needed", "goal"]


def test_a_step_without_its_output_has_failed(tmp_path: Path) -> None:
    bare = step(tmp_path, "bare")
    failed, _ = run(tmp_path, Step(**{**bare.__dict__, "output": tmp_path / "nothing"}))
    assert failed and not bare.is_done()
    assert "the commands succeeded, but" in log_tail(failed.log, 1)[0]


def test_a_command_that_does_not_exist_has_failed(tmp_path: Path) -> None:
    failed, _ = run(tmp_path, step(tmp_path, "absent", ("/no/such/program",)))
    assert failed and failed.exit_code == 127 and "No such file" in log_tail(failed.log, 1)[0]


def test_a_stamp_is_gone_while_its_step_runs(tmp_path: Path) -> None:
    again = step(
        tmp_path,
        "again",
        python("import sys, pathlib; sys.exit(pathlib.Path(sys.argv[1]).exists())", tmp_path / "again.installed"),
    )
    again.stamp.write()
    failed, _ = run(tmp_path, again)
    assert failed is None and again.is_done()


RUNNER = """
import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background
sys.path.insert(0, sys.argv[1])
from devstack.set_up import __main__ as command
from devstack.set_up.step import Stamp, Step
folder = pathlib.Path(sys.argv[2])
sleep = (sys.executable, "-S", "-c", "import os, time; print('asleep', os.getpid(), flush=True); time.sleep(600)")
class Plan:
    def __init__(self, *_): pass
    def missing(self):
        return [Step("slow", "the slow one", (sleep,), Stamp(folder / "slow.installed", str))]
command.Plan = Plan
command.home_folder = lambda _: folder
sys.exit(command.main(["use"]))
"""


@pytest.fixture
def slow_set_up(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A set-up in a process of its own, in the middle of a step that does not end."""
    process = subprocess.Popen(
        python(RUNNER, ROOT, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    log = tmp_path / "logs" / "setup-slow.log"
    wait_for(lambda: log.exists() and "\nasleep" in log.read_text())
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def is_locked(folder: Path) -> bool:
    with (folder / "setup.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_set_up_leaves_no_process_and_no_stamp(
    tmp_path: Path, slow_set_up: subprocess.Popen[str], number: signal.Signals
) -> None:
    slow_set_up.send_signal(number)
    _, error = slow_set_up.communicate(timeout=LIMIT)
    assert slow_set_up.returncode == command.INTERRUPTED
    assert "interrupted. Run it again" in error
    assert not (tmp_path / "slow.installed").exists()
    wait_for(lambda: not is_locked(tmp_path))  # a process that was just killed may still be ending


def test_what_a_killed_set_up_leaves_behind_holds_the_lock(tmp_path: Path, slow_set_up: subprocess.Popen[str]) -> None:
    assert is_locked(tmp_path) and (tmp_path / "setup.lock").read_text() == str(slow_set_up.pid)
    slow_set_up.kill()
    slow_set_up.wait()
    assert is_locked(tmp_path), "a second set-up would work beside the rest of the first"
    assert not (tmp_path / "slow.installed").exists()
    words = (tmp_path / "logs" / "setup-slow.log").read_text().split()
    os.kill(int(words[-1]), signal.SIGKILL)
    wait_for(lambda: not is_locked(tmp_path))
