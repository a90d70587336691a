"""A killed session of tests with a stack leaves no server and no worker running."""

from pathlib import Path

import psutil

from tests.harness.nested_session import READY, NestedSession

CONFTEST = "from tests.conftest import home, plain_environment, pytest_addoption, pytest_configure, stack\n"
TEST = f"""
import os, time

def test_it(stack):
{READY}
"""


def test_a_killed_session_leaves_no_stack_running(tmp_path: Path) -> None:
    session = NestedSession(tmp_path, CONFTEST, TEST)
    try:
        commands = [" ".join(psutil.Process(pid).cmdline()) for pid in session.started]
        for service in ("temporal server", "nessie", "worker.py"):
            assert any(service in command for command in commands), commands
        session.process.kill()
        session.process.wait()
        session.wait_until_nothing_is_left()
        assert not [each for each in psutil.process_iter() if str(tmp_path) in " ".join(_command(each))]
    finally:
        session.stop()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
