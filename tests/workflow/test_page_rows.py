"""Rows on the page and in its API: `show_rows` of the pipeline says who sees them, wherever they are shown."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.run import diffed_run
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.run import RunResult
from sluice.contracts.table_diffs import (
    ChangedCell,
    ChangedRow,
    ColumnChanges,
    DiffSide,
    DiffTablesInput,
    DiffTablesResult,
    PartitionChanges,
    RowDifferences,
    TableDiffResult,
    TableKey,
)
from sluice.errors import InvalidPipeline
from sluice.roles import Role, ShowRows, rows_refusal
from tests.harness.asgi import Browser
from tests.harness.page import behind_proxy
from tests.harness.waiting_run import started
from tests.harness.workflow import HEAD, WorkflowHarness
from web.run import diff

SECRET = "4711-meier"
"""A value of a row."""
PEOPLE = {"vera": Role.VIEWER, "ana": Role.APPROVER, "otto": Role.OPERATOR}
DIFFERENT = RowDifferences(
    added=1, removed=1, changed=1, columns=[ColumnChanges(column="name", cells=1)],
    partitions=[PartitionChanges(partition=f"name={SECRET}", added=1)],
    added_rows=[{"name": SECRET}], removed_rows=[{"name": SECRET}],
    changed_rows=[ChangedRow(key={"name": SECRET}, cells={"name": ChangedCell(before=SECRET, after=None)})],
)  # fmt: skip
SIDE = DiffSide(branch="main", hash="ab" * 20, description="main")


@pytest.fixture(autouse=True)
def _real_time(own_time_skipping: WorkflowEnvironment) -> Iterator[None]:
    with own_time_skipping.auto_time_skipping_disabled():
        yield


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[DiffTablesInput]:
    """The questions to a worker, which always answers with rows."""
    questions: list[DiffTablesInput] = []

    async def answer(_: object, __: object, question: DiffTablesInput, ___: object) -> DiffTablesResult:
        questions.append(question)
        table = TableDiffResult(table="t.x", state="changed", key=TableKey(columns=["name"]), rows=DIFFERENT)
        return DiffTablesResult(before=SIDE, after=SIDE, tables=[table])

    monkeypatch.setattr(diff, "query_lake", answer)
    return questions


def failing(harness: WorkflowHarness, verdict: str = "fail") -> None:
    """Let the audit find a row that breaks a check."""

    async def audit(_: Any, __: int) -> AuditResult:
        given = {"table": "t.x", "check": "not_null", "columns": ["name"], "sample": [{"name": SECRET}]}
        return AuditResult(decided=[CheckResult.model_validate({**given, "verdict": verdict, "failed_rows": 1})])

    harness.fakes.overrides["audit_branch"] = audit


async def quarantined(harness: WorkflowHarness, **pipeline: Any) -> RunResult:
    failing(harness)
    result = await harness.end(await harness.start(**pipeline))
    assert result.outcome == "quarantined" and SECRET in str(result.checks[0].sample)
    return result


def pages(harness: WorkflowHarness) -> dict[str, Browser]:
    return {person: behind_proxy(harness.client, person) for person in PEOPLE}


@pytest.mark.parametrize("show_rows", get_args(ShowRows))
async def test_rows_are_shown_to_whom_the_pipeline_says(
    own_harness: WorkflowHarness, asked: list[DiffTablesInput], show_rows: ShowRows
) -> None:
    run = await quarantined(own_harness, show_rows=show_rows)
    of_page = f"/runs/{run.workflow_id}/{run.run_id}"
    for person, page in pages(own_harness).items():
        why = rows_refusal(show_rows, PEOPLE[person])
        of_diff = f"/runs/{run.workflow_id}/{run.workflow_id}/diff"
        views = [of_page, f"/runs/{run.workflow_id}", of_diff, f"{of_diff}?rows=200&key=name&table=t.x"]
        api = [f"/api/runs/{run.workflow_id}{path}" for path in ("", "/diff", "/diff?rows=1000&key=name")]
        for path in (*views, *api):
            answer = await page.get(path)
            assert answer.status == 200, (path, answer.text)
            assert (SECRET in answer.text) == (not why), (person, path)
            if not path.startswith("/api/") or "/diff" in path:
                assert ("The rows are hidden" in answer.text) == bool(why), (person, path)
        (check,) = (await page.get(f"/api/runs/{run.workflow_id}")).json["checks"]
        assert check["failed_rows"] == 1 and bool(check["sample"]) == (not why)
        (table,) = (await page.get(f"/api/runs/{run.workflow_id}/diff")).json["tables"]
        assert (table["rows"]["added"], table["rows"]["columns"][0]["column"]) == (1, "name"), "numbers stay"
        assert not why or (table["notes"] == [why] and asked[-1].rows == 0), "the worker is not asked for them"


async def test_by_default_everybody_sees_rows(own_harness: WorkflowHarness, asked: list[DiffTablesInput]) -> None:
    run = await quarantined(own_harness)
    for path in (run.run_id, f"{run.workflow_id}/diff"):
        assert SECRET in (await pages(own_harness)["vera"].get(f"/runs/{run.workflow_id}/{path}")).text
    assert asked[-1].rows > 0


async def test_rows_of_a_state_without_a_known_run_are_hidden(
    own_harness: WorkflowHarness, asked: list[DiffTablesInput], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a commit or branch in place of a run leads past no pipeline."""

    async def find_none(_: object, named: str) -> None:  # the server of this test lists no runs
        raise InvalidPipeline(f"there is no run {named!r}")

    run = await quarantined(own_harness, show_rows="nobody")
    monkeypatch.setattr(diffed_run, "find_run", find_none)
    for name in (SIDE.hash, SIDE.hash[:12], "main", "x"):
        for path in (f"/api/runs/{name}/diff", f"/runs/{run.workflow_id}/{name}/diff"):
            answer = await pages(own_harness)["otto"].get(path)
            assert answer.status == 200 and SECRET not in answer.text and asked[-1].rows == 0
            assert "Temporal does not have the pipeline that says who may see them" in answer.text


async def test_who_sees_no_rows_may_decide(own_harness: WorkflowHarness) -> None:
    """The report of a decision is the same with and without its rows."""
    failing(own_harness, "warn")
    run = await started(own_harness, show_rows="nobody")
    ana = pages(own_harness)["ana"]
    path = f"/api/runs/{run.handle.id}"
    shown = (await ana.get(path)).json
    assert not shown["checks"][0]["sample"] and SECRET not in (await ana.get(run.path)).text
    request = {"decision": "approve", "report": f"{HEAD}:{shown['audit_digest']}"}
    answer = await ana.post_json(f"{path}/decision", request)
    assert answer.status == 200, answer.text
    assert (await run.end()).outcome == "published"
