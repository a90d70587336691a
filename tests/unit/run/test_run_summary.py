"""The line that lists of runs show for a run: its tables, and where their rows come from."""

from typing import Any

import pytest

from runtime.run.start_run import describe_work
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from sluice.pipeline.scope import LoadScope

SOURCE = {"source": {"path": "a.csv"}}
NO_FILES = RunInput(digest="d")


@pytest.mark.parametrize(
    ("write", "files", "summary"),
    [
        (SOURCE, RunInput(digest="d", files=2, bytes=2048), "t.x from 2 files, 2,048 bytes"),
        (
            SOURCE,
            RunInput(digest="d", files=1, bytes=3, scope=LoadScope(path="2018-01")),
            "t.x from 1 file, 3 bytes, for 2018-01",
        ),
        ({"mode": "sql", "statements": ["DELETE FROM t.x"]}, NO_FILES, "t.x from tables of the lake"),
        ({"job": "jobs/orders.py"}, NO_FILES, "t.x from the program orders.py"),
        ({"job": "jobs/orders.py", **SOURCE}, RunInput(digest="d", files=1, bytes=5), "t.x from 1 file, 5 bytes"),
    ],
)
def test_where_rows_come_from(write: dict[str, Any], files: RunInput, summary: str) -> None:
    stated = {"name": "p", "write": write, "tables": {"t.x": {"checks": [{"check": "row_count", "min": 1}]}}}
    request = RunRequest(pipeline=Pipeline.model_validate(stated), input=files, starter="ana")
    assert describe_work(request) == summary
