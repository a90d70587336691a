"""Fixtures of whole runs."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.harness.page_process import PageProcess
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness
from tests.harness.waiting import LIMIT


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser at CHROMIUM_PATH or on the PATH; `.ci/run` installs one where it can."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM_PATH") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("there is no chromium on the PATH, and CHROMIUM_PATH is not set")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """The browser of this machine. It must end with the module: its event loop would disturb asynchronous tests."""
    expect.set_options(timeout=LIMIT * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def backfill_queue(
    request: pytest.FixtureRequest, warm_stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Variables of a task queue with a worker for Spark. The test starts and kills the control worker.

    A worker for both roles would lose its warm Spark at each kill: `tests/faults/test_backfill.py` tests that.
    """
    name = request.module.__name__.rpartition(".")[2].replace("_", "-")
    queue = {**warm_stack, "SLUICE_TASK_QUEUE": name}
    spark = WorkerProcess({**queue, "SLUICE_WORKER_ROLE": "spark"}, tmp_path_factory.mktemp("spark"))
    yield {**queue, "SLUICE_WORKER_ROLE": "control"}
    spark.stop()


@pytest.fixture(scope="module")
def runs(warm_stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> SystemHarness:
    """The commands by which a test starts and awaits the runs that the page shows."""
    return SystemHarness(tmp_path_factory.mktemp("runs"), {**os.environ, **warm_stack})


@pytest.fixture(scope="module")
def ana(warm_stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    """The page that Ana started."""
    page = PageProcess(warm_stack, tmp_path_factory.mktemp("page"), "ana")
    yield page
    page.kill()
