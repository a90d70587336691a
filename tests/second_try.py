"""The second try of slow tests (`--second-try`): each that failed runs once more, by itself, after all others.

If every failure was of a slow test that passed on its second try, the session passes. The last lines name each such
test with both outcomes, and `tests/flaky.md` lists the known ones. A session that did not run all its tests gets no
second try, nor does one with more failures than flaky tests explain.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

MOST = 10
"""Maximum number of slow tests that get a second try. More failures are not due to chance."""
FLAKY = "flaky"
"""Name in the summary for tests that failed and then passed."""
LIST = Path(__file__).with_name("flaky.md")
_LINE = 160
"""Maximum length of the first line of a failure, in characters."""


@dataclass(frozen=True)
class Failure:
    """The first failure of a test, in its set-up, its call or its tear-down."""

    test: str
    is_slow: bool
    line: str


def add_options(parser: pytest.Parser) -> None:
    """Add the options of a session and of the session for its second try."""
    parser.addoption("--second-try", action="store_true", help="Run slow tests that fail once more, by themselves.")
    parser.addoption("--outcomes", metavar="FILE", help="Write the outcome of each test into a JSON file.")


def register(config: pytest.Config) -> None:
    """Register the plugins that the options request, except in the processes of xdist."""
    if hasattr(config, "workerinput"):
        return
    if config.getoption("--second-try"):
        second_try = SecondTry(config.rootpath)
        config.pluginmanager.register(second_try)
        config.pluginmanager.register(ClosingLines(second_try))
    if file := config.getoption("--outcomes"):
        config.pluginmanager.register(Outcomes(Path(file)))


def failures_to_repeat(failures: list[Failure]) -> list[str]:
    """Return the slow tests that failed, or none if there are too many."""
    slow = [failure.test for failure in failures if failure.is_slow]
    return slow if len(slow) <= MOST else []


def closing_lines(failures: list[Failure], outcomes: Mapping[str, str], known: str, today: date) -> list[str]:
    """Return the lines about the repeated tests: their names, both outcomes, and the entries to add to the list."""
    lines = []
    for failure in failures:
        test = failure.test
        if test not in outcomes:
            continue
        if outcomes[test] != "passed":
            lines.append(f"{test} failed, and {outcomes[test]} when it was run again by itself")
            continue
        lines.append(f"{test} failed, and passed when it was run again by itself")
        if f"| {_cell(test)} |" in known:
            lines.append(f"  tests/{LIST.name} knows it: a flaky test is a defect to be mended")
        else:
            lines += [f"  add to tests/{LIST.name}:", f"  | {_cell(test)} | {today} | {_cell(failure.line)} |"]
    return lines


class SecondTry:
    """A plugin that reruns the failed slow tests of a session, and decides whether the session passes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._failures: dict[str, Failure] = {}
        self._did_not_collect = False
        self.outcomes: dict[str, str] = {}
        """The outcome of each second try."""

    @property
    def failures(self) -> list[Failure]:
        """The failed tests, each once, in their order."""
        return list(self._failures.values())

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record that a module could not be collected."""
        self._did_not_collect |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the first failure of a test. A test whose process died has no markers, and counts as quick."""
        if report.failed:
            test = str(report.nodeid)
            self._failures.setdefault(test, Failure(test, "slow" in report.keywords, _first_line(report)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Rerun the failed slow tests after the stacks of this session have ended."""
        stopped = session.shouldstop or session.shouldfail or self._did_not_collect
        tests = failures_to_repeat(self.failures)
        if exitstatus != pytest.ExitCode.TESTS_FAILED or stopped or not tests:
            return
        try:
            self.outcomes = repeat(tests, self._root)
        except KeyboardInterrupt:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
            return
        if all(self.is_flaky(failure.test) for failure in self.failures):
            session.exitstatus = pytest.ExitCode.OK

    def is_flaky(self, test: str) -> bool:
        """Return True if a failed test passed on its second try."""
        return self.outcomes.get(test) == "passed"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Count tests that passed on their second try as flaky: their failures are already printed."""
        stats: dict[str, list[Any]] = terminalreporter.stats
        for kind in ("failed", "error"):
            reports = stats.pop(kind, [])
            for report in reports:
                flaky = self.is_flaky(str(getattr(report, "nodeid", "")))
                stats.setdefault(FLAKY if flaky else kind, []).append(report)


class ClosingLines:
    """A plugin that names the repeated tests between pytest's list of failures and its last line."""

    def __init__(self, second_try: SecondTry) -> None:
        self._second_try = second_try

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        """Print the lines after all other sections."""
        yield
        tried = self._second_try
        slow = sum(failure.is_slow for failure in tried.failures)
        if slow > MOST:
            terminalreporter.write_line(f"{slow} slow tests failed: more than {MOST} are not run again")
        known = LIST.read_text() if LIST.exists() else ""
        lines = closing_lines(tried.failures, tried.outcomes, known, date.today())
        if lines:
            terminalreporter.section("slow tests that failed, and ran again")
        for line in lines:
            terminalreporter.write_line(line)


class Outcomes:
    """A plugin that writes the outcome of each test to a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a failure in any phase; otherwise record the outcome of the call, or that the test was skipped."""
        if report.outcome != "passed" or report.when == "call":
            test = str(report.nodeid)
            self._outcomes[test] = "failed" if self._outcomes.get(test) == "failed" else report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes to the file."""
        self._file.write_text(json.dumps(self._outcomes))


def repeat(tests: list[str], root: Path) -> dict[str, str]:
    """Run tests one after the other in one process. Return the outcome of each; `did not run` stands for none."""
    print(f"\n{len(tests)} slow tests failed, and run once more by themselves:", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--outcomes", str(file), *tests]
        subprocess.run(command, cwd=root, check=False)
        outcomes: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    return {test: outcomes.get(test, "did not run") for test in tests}


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:_LINE]


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
