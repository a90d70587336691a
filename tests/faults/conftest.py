"""What the fault tests share: a fault harness with its own task queue and workers, and the table of what was tried."""

import uuid
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tests.harness.faults import FaultHarness


@pytest.fixture
def faults(stack: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FaultHarness]:
    """A task queue of the test's own, workers to break, and the checker; Spark is warm for tests marked `warm`."""
    warm = request.getfixturevalue("warm_stack") if request.node.get_closest_marker("warm") else None
    harness = FaultHarness(stack, tmp_path, f"queue-{uuid.uuid4()}", warm)
    try:
        yield harness
    finally:
        harness.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-table", help="Write what was tried, fault by fault, into this Markdown file.")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add to the report of a fault test what must hold, and the case."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and "faults" in item.nodeid:
        title = (item.function.__doc__ or item.name).strip().splitlines()[0]  # type: ignore[attr-defined]
        case = item.name[item.name.index("[") + 1 : -1] if "[" in item.name else ""
        report.user_properties.append(("fault", f"| {title} | {case} |"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the table of what was tried, where one was asked for."""
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
