"""A slow test that fails runs once more by itself, and a session whose failures were all flaky passes."""

import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from devstack.stack import ROOT
from tests.second_try import LIST, MOST, Failure, closing_lines, failures_to_repeat

CONFTEST = """
from tests import second_try

pytest_addoption, pytest_configure = second_try.add_options, second_try.register
"""
TESTS = """
import os
from pathlib import Path
import pytest

slow = pytest.mark.slow

def fail_once(name):
    with Path("processes").open("a") as file:
        file.write(f"{name} {os.getpid()}\\n")
    first = not Path(name).exists()
    Path(name).touch()
    assert not first, "the machine is slow\\nor so"

@pytest.fixture
def broken():
    fail_once("set-up")

@slow
def test_flaky():
    fail_once("flaky")

@slow
def test_flaky_in_its_set_up(broken):
    pass

@slow
def test_broken():
    assert False, "a defect"

def test_quick():
    fail_once("quick")

@slow
def test_that_passes():
    pass
"""
DAY = date(2026, 11, 26)


def session(folder: Path, *arguments: str, more: str = "") -> tuple[int, list[str]]:
    """Run a session in a folder; return its exit code, and its output from the second session on."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers = slow\npythonpath = {ROOT}\n")
    (folder / "test_some.py").write_text(TESTS + more)
    command = [sys.executable, "-m", "pytest", "--second-try", "-ra", *arguments]
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    environment = {**os.environ, **plugins}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_a_session_passes_whose_failures_were_all_flaky(tmp_path: Path) -> None:
    code, output = session(tmp_path, "-n", "1", "-k", "flaky or passes")
    assert code == 0, output
    assert re.fullmatch(r"=+ 1 passed, 2 flaky in .*", output[-1]), output
    start = next(number for number, line in enumerate(output) if "slow tests that failed, and ran again" in line)
    closing = output[start + 1 : -1]
    for name in ("test_flaky", "test_flaky_in_its_set_up"):
        test = f"test_some.py::{name}"
        named = closing.index(f"{test} failed, and passed when it was run again by itself")
        assert closing[named + 1] == "  add to tests/flaky.md:"
        assert closing[named + 2] == f"  | {test} | {date.today()} | AssertionError: the machine is slow |"
    assert any(line.startswith("E ") and "the machine is slow" in line for line in output), "the failure is not shown"
    assert not any(line.startswith(("FAILED", "ERROR")) for line in output)
    again = [line.split()[1] for line in (tmp_path / "processes").read_text().splitlines()[-2:]]
    assert again[0] == again[1], "the second tries were not in one process"


def test_a_test_that_fails_twice_and_a_quick_one_that_fails_fail_the_session(tmp_path: Path) -> None:
    code, output = session(tmp_path)
    assert code == 1, output
    assert "test_some.py::test_broken failed, and failed when it was run again by itself" in output
    assert (tmp_path / "processes").read_text().count("quick") == 1, "a quick test got a second try"
    assert re.fullmatch(r"=+ 2 failed, 1 passed, 2 flaky in .*", output[-1]), output


@pytest.mark.parametrize(
    ("arguments", "more"), [(["-x"], ""), (["--continue-on-collection-errors"], "\nimport nothing_of_the_kind\n")]
)
def test_a_session_that_did_not_run_all_its_tests_gets_no_second_try(
    tmp_path: Path, arguments: list[str], more: str
) -> None:
    code, output = session(tmp_path, *arguments, more=more)
    assert code != 0
    assert not any("run once more" in line for line in output), output


def failure(number: int, is_slow: bool = True) -> Failure:
    return Failure(f"tests/system/test_x.py::test_{number}[a|b]", is_slow, "AssertionError: 1 | 2")


def test_many_failures_are_not_flaky() -> None:
    quick = failure(100, is_slow=False)
    failures = [quick, *(failure(number) for number in range(MOST))]
    assert failures_to_repeat(failures) == [each.test for each in failures[1:]]
    assert failures_to_repeat([*failures, failure(MOST)]) == []


def test_a_test_of_the_list_is_not_to_be_added_again() -> None:
    outcomes = {failure(1).test: "passed"}
    unknown = closing_lines([failure(1)], outcomes, "", DAY)
    row = r"| tests/system/test_x.py::test_1[a\|b] | 2026-11-26 | AssertionError: 1 \| 2 |"
    assert unknown[1:] == ["  add to tests/flaky.md:", f"  {row}"]
    known = closing_lines([failure(1)], outcomes, row, DAY)
    assert [known[0], len(known)] == [unknown[0], 2] and "knows it" in known[1]


def test_the_list_names_tests_that_exist_since_a_date() -> None:
    rows = [line for line in LIST.read_text().splitlines() if line.startswith("| ")][1:]
    for row in rows:
        test, seen, line = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:4])
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), f"{test} does not exist: delete its row"
        assert date.fromisoformat(seen) and line, row
