"""Shared fixtures of all tests: one real stack per session, the selections, and a table of times."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from temporalio.activity import Info
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from devstack.stack import Stack
from runtime.temporal_client import connect
from tests import second_try, selection
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.lake import LakeReader
from tests.harness.processes import WorkerProcess
from tests.harness.session_guard import SessionGuard
from tests.harness.system import SystemHarness, link_tools
from tests.harness.waiting import LIMIT

_KEPT = ("TEMPORAL_CLI_PATH", "SLUICE_SEED")
"""Variables of this shell that tests read: the Temporal CLI, and the seed that repeats a random test."""
_PREFIXES = (
    "CATALOG",
    "ICEBERG",
    "TEMPORAL",
    "NESSIE",
    "SLUICE",
    "SLACK",
    "OPENLINEAGE",
    "TABLE_NAME",
    "NAMESPACE",
    "BRANCH_NAME",
    "S3_PATH",
    "NOT_NULL",
)

_SHORT_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m -Xmn300m"
"""JVM options for Spark in tests: in a minute, the second compiler and parallel collection cost more than they save.

The sizes avoid collections in a JVM that is about to end anyway.
"""

_LONGEST = 20
"""Number of modules in the table of times."""

hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    second_try.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Start the guard, which ends leftovers of tests even if this process is killed; register the options' plugins."""
    config.pluginmanager.register(SessionGuard())
    second_try.register(config)


@pytest.fixture(scope="session", autouse=True)
def plain_environment() -> None:
    """Remove this shell's width and its settings of Temporal, Nessie and Slack: tests bring their own.

    Spark is started for short use. A worker keeps a Spark warm only where a test says so.
    """
    for name in list(os.environ):
        if (name.startswith(_PREFIXES) or name == "COLUMNS") and name not in _KEPT:
            del os.environ[name]
    os.environ |= {"SPARK_SUBMIT_OPTS": _SHORT_JVM, "SPARK_ENGINE": "submit"}


@pytest.fixture(scope="session", autouse=True)
def patient_activities() -> Iterator[None]:
    """Give activities that tests call directly more than the SDK's one second to end when they are overdue."""
    plain = ActivityEnvironment.default_info

    def patient() -> Info:
        return replace(plain(), start_to_close_timeout=timedelta(seconds=LIMIT))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ActivityEnvironment, "default_info", staticmethod(patient))
        yield


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of the session's stack, with the tools that set-up installed."""
    home = tmp_path_factory.mktemp("home")
    link_tools(home)
    return home


@pytest.fixture(scope="session")
def stack(home: Path) -> Iterator[dict[str, str]]:
    """The variables by which programs find the session's running stack."""
    variables = {"SLUICE_HOME": str(home), "SLUICE_HEARTBEAT_TIMEOUT": "5"}
    stack = Stack(home, {**os.environ, **variables})
    try:
        yield {**stack.up(), **variables}
    finally:
        stack.down()


@pytest.fixture(scope="session")
async def client(stack: dict[str, str]) -> Client:
    """A client of the session's Temporal server."""
    return await connect(stack)


@pytest.fixture(scope="session")
def warm_stack(stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The stack's variables, with an additional worker that keeps a Spark warm."""
    variables = {**stack, "SLUICE_TASK_QUEUE": "warm-tests", "SPARK_ENGINE": "connect"}
    worker = WorkerProcess(variables, tmp_path_factory.mktemp("warm"))
    yield variables
    worker.stop()


@pytest.fixture(scope="session")
def iceberg_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRestServer]:
    """Iceberg's REST reference server. A test that ends a server starts one of its own."""
    server = IcebergRestServer(tmp_path_factory.mktemp("iceberg-rest"))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def system(stack: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> SystemHarness:
    """The system harness, in a folder of the test's own. Whole runs of tests/e2e use the warm engine."""
    marked = request.node.get_closest_marker
    warm = marked("warm") or (selection.folder_of(request.path) == "e2e" and not marked("cold"))
    variables = request.getfixturevalue("warm_stack") if warm else stack
    return SystemHarness(tmp_path, {**os.environ, **variables})


@pytest.fixture
def lake(stack: dict[str, str]) -> LakeReader:
    """A reader of the lake that is independent of Sluice's code."""
    return LakeReader(stack)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort tests into the selections before `-m` deselects any."""
    selection.select(config, items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> selection.ByKind | None:
    """Distribute tests among processes by kind for `--dist loadscope`."""
    return selection.ByKind(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of tests and their time, including set-up: of each folder, and of the longest modules."""
    reports = [each for some in terminalreporter.stats.values() for each in some if isinstance(each, pytest.TestReport)]
    folders = _times(reports, lambda nodeid: nodeid.split("/")[1])
    modules = _times(reports, lambda nodeid: nodeid.split("::")[0].removeprefix("tests/"))
    longest = sorted(modules, key=lambda each: -each[2])[:_LONGEST]
    for title, times in (("time by folder", folders), ("longest modules", longest)):
        if times:
            terminalreporter.section(title)
        for name, tests, seconds in times:
            terminalreporter.write_line(f"{name:45} {tests:5} tests {seconds:7.0f} s")


def _times(reports: list[pytest.TestReport], group_of: Callable[[str], str]) -> list[tuple[str, int, float]]:
    """Return the names of groups of tests, sorted, with the number of their tests and their time in seconds."""
    groups: dict[str, list[pytest.TestReport]] = {}
    for report in reports:
        groups.setdefault(group_of(report.nodeid), []).append(report)
    return [
        (name, len({each.nodeid for each in ran}), sum(each.duration for each in ran))
        for name, ran in sorted(groups.items())
    ]
