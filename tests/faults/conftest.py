"""Fixtures of the fault tests: a fault harness with its own task queue and workers, and the table of tried faults."""

import os
import uuid
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tests.harness.faults import FaultHarness
from tests.harness.lake import LakeReader
from tests.harness.processes import WorkerProcess
from tests.harness.rest_stack import IcebergLakeReader, RestStack
from tests.harness.system import SystemHarness


@pytest.fixture
def catalog_kind(request: pytest.FixtureRequest) -> str:
    """The catalog of the test: Nessie, unless the test is marked `on_both_catalogs`."""
    return str(getattr(request, "param", "nessie"))


@pytest.fixture(scope="session")
def rest_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestStack]:
    """A stack on a REST server. Tests may end the server, and then start it again."""
    stack = RestStack(tmp_path_factory.mktemp("rest-stack"), SLUICE_HEARTBEAT_TIMEOUT="5")
    try:
        yield stack
    finally:
        stack.down()


@pytest.fixture(scope="session")
def warm_rest_stack(rest_stack: RestStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables of the REST stack, with a worker that keeps a Spark warm."""
    variables = {**rest_stack.variables, "SLUICE_TASK_QUEUE": "warm-tests", "SPARK_ENGINE": "connect"}
    worker = WorkerProcess(variables, tmp_path_factory.mktemp("warm-rest"))
    yield variables
    worker.stop()


@pytest.fixture
def variables(catalog_kind: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """The variables of the test's stack."""
    if catalog_kind == "rest":
        rest_stack: RestStack = request.getfixturevalue("rest_stack")
        return rest_stack.variables
    stack: dict[str, str] = request.getfixturevalue("stack")
    return stack


@pytest.fixture
def warm_variables(catalog_kind: str, request: pytest.FixtureRequest) -> dict[str, str] | None:
    """The variables of the worker with a warm Spark, for tests marked `warm`, else None."""
    if not request.node.get_closest_marker("warm"):
        return None
    warm: dict[str, str] = request.getfixturevalue("warm_rest_stack" if catalog_kind == "rest" else "warm_stack")
    return warm


@pytest.fixture
def faults(variables: dict[str, str], warm_variables: dict[str, str] | None, tmp_path: Path) -> Iterator[FaultHarness]:
    """A fault harness with a task queue of the test's own, breaking workers, and a warm Spark for `warm` tests."""
    harness = FaultHarness(variables, tmp_path, f"queue-{uuid.uuid4()}", warm_variables)
    try:
        yield harness
    finally:
        harness.close()


@pytest.fixture
def system(variables: dict[str, str], warm_variables: dict[str, str] | None, tmp_path: Path) -> SystemHarness:
    """The system harness, in a folder of the test's own."""
    return SystemHarness(tmp_path, {**os.environ, **(warm_variables or variables)})


@pytest.fixture
def lake(catalog_kind: str, variables: dict[str, str]) -> LakeReader:
    """A reader of the lake that is independent of Sluice's code."""
    return IcebergLakeReader(variables) if catalog_kind == "rest" else LakeReader(variables)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-table", help="Write what was tried, fault by fault, into this Markdown file.")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add the test's condition and case to the report of a fault test."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and "faults" in item.nodeid:
        title = (item.function.__doc__ or item.name).strip().splitlines()[0]  # type: ignore[attr-defined]
        case = item.name[item.name.index("[") + 1 : -1] if "[" in item.name else ""
        report.user_properties.append(("fault", f"| {title} | {case} |"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the table of tried faults if the option names a file."""
    target = config.getoption("--faults-table")
    if not target:
        return
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    rows = [
        f"{properties['fault']} {report.outcome} |"
        for report in reports
        if "fault" in (properties := dict(getattr(report, "user_properties", [])))
    ]
    page = Path(target)
    before = page.read_text().split("<!-- table -->")[0] if page.exists() else ""
    table = "\n".join(["| what must hold | fault | outcome |", "|---|---|---|", *sorted(rows)])
    page.write_text(f"{before}<!-- table -->\n\nTried on {date.today().isoformat()}, by `make faults`.\n\n{table}\n")
