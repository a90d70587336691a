"""Nothing that tests start outlives their process, however that process ends."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.nested_session import READY, NestedSession
from tests.harness.processes import wait_for

CONFTEST = """
from tests.harness.session_guard import SessionGuard

def pytest_configure(config):
    config.pluginmanager.register(SessionGuard())
"""
TEST = f"""
import os, subprocess, sys, time

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
FAMILY = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {{DEAF!r}}])"

def test_it():
    subprocess.Popen([sys.executable, "-c", FAMILY], start_new_session=True)
    subprocess.Popen(["sleep", "600"])
{READY}
"""
"""A test that starts a parent and a child that ignores SIGTERM, in a session of their own, and another process."""


@pytest.fixture
def nested(tmp_path: Path) -> Iterator[NestedSession]:
    """A session whose test has started its processes."""
    session = NestedSession(tmp_path, CONFTEST, TEST)
    try:
        # The process of xdist, and three that the test started:
        wait_for(lambda: len(session.started) == 4, lambda: str(session.started))
        yield session
    finally:
        session.stop()


def test_ctrl_c_leaves_nothing_running(nested: NestedSession) -> None:
    assert nested.interrupt() == pytest.ExitCode.INTERRUPTED
    assert not nested.started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_session_leaves_nothing_running(nested: NestedSession, number: signal.Signals) -> None:
    nested.process.send_signal(number)
    nested.process.wait()
    nested.wait_until_nothing_is_left()


def test_a_killed_process_of_xdist_leaves_nothing_running(nested: NestedSession) -> None:
    os.kill(nested.test_process, signal.SIGKILL)
    assert nested.process.wait(60) == pytest.ExitCode.TESTS_FAILED
    assert not nested.started


def test_what_tests_forgot_to_stop_ends_with_their_session(tmp_path: Path) -> None:
    (tmp_path / "goes on").touch()
    session = NestedSession(tmp_path, CONFTEST, TEST, processes=0)
    assert session.process.wait(60) == pytest.ExitCode.OK
    assert not session.started
