"""Fixtures of tests of the whole system."""

from collections.abc import Iterator

import pytest

from tests.harness.processes import WorkerProcess


@pytest.fixture(scope="module")
def automatic(stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The stack's variables, with a worker that has the default engine."""
    variables = {**stack, "SLUICE_TASK_QUEUE": "automatic", "SPARK_ENGINE": "auto"}
    worker = WorkerProcess(variables, tmp_path_factory.mktemp("automatic"))
    yield variables
    worker.stop()
