"""The helpers of the tests do not interfere with each other."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.pipelines import pipeline
from tests.harness.system import SystemHarness


def test_runs_that_start_at_once_have_files_of_their_own(tmp_path: Path) -> None:
    """A soak mistook one run for another because two threads had written their pipelines into one file."""
    system = SystemHarness(tmp_path, {})
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(lambda number: system.file(f"name: p{number}"), range(200)))
    assert sorted(file.read_text() for file in files) == sorted(f"name: p{number}" for number in range(200))


def test_a_table_of_two_test_modules_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two modules used one table. The one that ran second failed, and the number of processes decided which."""
    system = SystemHarness(tmp_path, {"SLUICE_HOME": str(tmp_path / "home")})
    for _ in range(2):
        system.file(pipeline("one", Path("one.csv")))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/e2e/test_another.py::test_it (call)")
    system.file(pipeline("another", Path("one.csv")))
    with pytest.raises(AssertionError, match=r"t\.one is used by .*test_another.*test_harness"):
        system.file(pipeline("another", Path("one.csv")).replace("t.another", "t.one"))
