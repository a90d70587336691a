"""What the fault tests share: an arena with its own queue and workers, and the table of what was tried."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tests.harness.faults import Arena

_ROWS = pytest.StashKey[list[tuple[str, str, str]]]()


@pytest.fixture
def arena(stack: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Arena]:
    """A front door on a task queue of its own, workers to break, and the checker."""
    arena = Arena(stack, tmp_path, f"queue-{abs(hash(request.node.nodeid))}")
    try:
        yield arena
    finally:
        arena.end()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-table", help="Write what was tried, fault by fault, into this Markdown file.")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ROWS] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and "faults" in item.nodeid:
        words = (item.function.__doc__ or item.name).strip().splitlines()[0]  # type: ignore[attr-defined]
        case = item.name[item.name.index("[") + 1 : -1] if "[" in item.name else ""
        item.config.stash[_ROWS].append((words, case, report.outcome))


def pytest_sessionfinish(session: pytest.Session) -> None:
    target = session.config.getoption("--faults-table")
    if not target:
        return
    rows = [f"| {words} | {case} | {how} |" for words, case, how in session.config.stash[_ROWS]]
    page = Path(target)
    before = page.read_text().split("<!-- table -->")[0] if page.exists() else ""
    table = "\n".join(["| what must hold | fault | outcome |", "|---|---|---|", *rows])
    page.write_text(f"{before}<!-- table -->\n\nTried on {date.today().isoformat()}, by `make faults`.\n\n{table}\n")
