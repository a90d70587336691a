"""A start attaches to a run under way with the same input, or states the difference from that run."""

from typing import Any

import pytest

from runtime.run.start_run import _difference
from sluice.contracts.existing_rows import Resume
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.pipeline.model import Pipeline


def request(minimum: int = 1, **more: Any) -> RunRequest:
    checks = [{"check": "row_count", "min": minimum}]
    stated = {"name": "p", "write": {"source": {"path": "a.csv"}}, "tables": {"t.x": {"checks": checks}}}
    pipeline = Pipeline.model_validate(stated)
    return RunRequest.model_validate({"pipeline": pipeline, "input": RunInput(digest="d"), "starter": "ana", **more})


def resume(*statements: str) -> Resume:
    return Resume(branch="quarantine/p", run_id="r", base="b", head="h", statements=list(statements))


@pytest.mark.parametrize(
    ("earlier", "wanted", "words"),
    [
        (request(), request(), ""),
        (request(), request(starter="bob"), ""),
        (request(), request(minimum=2), "by ana from another version of the pipeline 'p'"),
        (request(), request(again=True), "started without --again"),
        (request(again=True), request(), ""),  # it loads at least the files of this start
        (request(resume=resume("UPDATE t.x SET a = 1")), request(resume=resume()), "repairs other rows"),
        (request(resume=resume()), request(resume=resume()), ""),
    ],
)
def test_a_run_under_way_does_what_is_asked_for_or_is_not_attached_to(
    earlier: RunRequest, wanted: RunRequest, words: str
) -> None:
    difference = _difference(earlier, wanted)
    assert words in difference and bool(words) == bool(difference)
