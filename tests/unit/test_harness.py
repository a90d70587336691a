"""The helpers of the tests do not trip over themselves."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness.system import SystemHarness


def test_runs_that_start_at_once_have_files_of_their_own(tmp_path: Path) -> None:
    """A soak took one run for another: two threads had written their pipelines into one file."""
    system = SystemHarness(tmp_path, {})
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(lambda number: system.file(f"name: p{number}"), range(200)))
    assert sorted(file.read_text() for file in files) == sorted(f"name: p{number}" for number in range(200))
