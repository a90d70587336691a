"""Verdicts on the page: five looks, what each does to the merge, and the rows that broke a check."""

import json
from typing import Any

import pytest

from sluice.approval.decisions import ApprovalRecord
from sluice.approval.waivers import WaivableCheck, WaivedCheck
from sluice.checks.verdicts import BadRowsQuery, CheckResult, Verdict
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.contracts.table_changes import TableChange
from sluice.pipeline.model import Pipeline
from web.audit.verdicts import VerdictView, count_verdict_looks, view_verdicts

CHECKS: list[dict[str, Any]] = [
    {"check": "not_null", "column": "id"},
    {"check": "unique", "column": "id", "severity": "warn"},
    {"check": "not_null", "column": "name", "waivable": True},
    {"check": "row_count", "min": 1},
    {"check": "unique", "column": "name"},
]
REQUEST = RunRequest(
    pipeline=Pipeline.model_validate({"name": "p", "write": {"job": "j.py"}, "tables": {"t.x": {"checks": CHECKS}}}),
    input=RunInput(digest="d"),
    starter="zoe",
)
TO_WAIVE = WaivableCheck(table="t.x", index=2, check="not_null(name)", fingerprint="ab" * 32)
WAIVED = WaivedCheck(
    **dict(TO_WAIVE), by=["ana", "ben"], reason="late feed", until="2026-12-01T23:59:59+00:00", run_id="r"
)


def verdict(index: int, verdict: Verdict, **fields: Any) -> CheckResult:
    check = CHECKS[index]
    columns = [check["column"]] if "column" in check else []
    return CheckResult(table="t.x", index=index, check=check["check"], columns=columns, verdict=verdict, **fields)


def result(*checks: CheckResult, **fields: Any) -> RunResult:
    return RunResult(run_id="r", workflow_id="w", pipeline="p", checks=list(checks), **fields)


ALL = (
    verdict(3, "pass", observed=7, expected="at least 1 row"),
    verdict(1, "warn", observed=2, failed_rows=2),
    verdict(2, "error", message="no such column"),
    verdict(0, "fail", observed=3, failed_rows=3, expected="no nulls", answered_by="duckdb", files=2),
)


def test_the_five_verdicts_the_worst_first() -> None:
    shown = view_verdicts(result(*ALL, outcome="quarantined"), REQUEST)
    assert [(each.look, each.word, each.check) for each in shown.notable] == [
        ("failed", "Failed", "not_null(id)"),
        ("unanswered", "Could not be answered", "not_null(name)"),
        ("warned", "Warned", "unique(id)"),
    ]
    assert [(each.look, each.check) for each in shown.others] == [("passed", "row_count"), ("notrun", "unique(name)")]
    assert [text for _, text in shown.counts] == [
        "1 failed", "1 could not be answered", "1 warned", "1 passed", "1 not run",
    ]  # fmt: skip
    assert [text for _, text in count_verdict_looks(ALL)] == [text for _, text in shown.counts][:-1]
    assert shown.blocking == 2


def test_the_facts_of_a_failed_check() -> None:
    failed = view_verdicts(result(*ALL), REQUEST).notable[0]
    assert (failed.sentence, failed.expected, failed.observed) == ("3 bad rows", "no nulls", "3 bad rows")
    assert (failed.severity, failed.answered_by, failed.table) == ("fail", "duckdb, 2 files", "t.x")
    assert view_verdicts(result(*ALL), REQUEST).notable[2].severity == "warn"


def test_a_check_without_an_answer_says_why() -> None:
    (unanswered,) = view_verdicts(result(ALL[2]), None).notable
    assert (unanswered.sentence, unanswered.observed) == ("No answer: no such column", "")


def _failed(**fields: Any) -> VerdictView:
    (view,) = view_verdicts(result(verdict(2, "fail", failed_rows=1, observed=1), **fields), REQUEST).notable
    return view


@pytest.mark.parametrize(
    ("fields", "effect", "blocks"),
    [
        ({}, "blocks the merge", True),
        ({"approval": ApprovalRecord(required=1)}, "blocks the merge", True),
        ({"approval": ApprovalRecord(required=1, to_waive=[TO_WAIVE])}, "blocks until an approval waives it", True),
        ({"waived": [WAIVED]}, "does not block: waived by ana, ben until 2026-12-01 23:59 UTC: late feed", False),
        ({"waived": [WAIVED.model_copy(update={"index": 0})]}, "blocks the merge", True),
    ],
)
def test_the_effect_of_a_failed_check(fields: dict[str, Any], effect: str, blocks: bool) -> None:
    view = _failed(**fields)
    assert (view.effect, view.blocks) == (effect, blocks)


@pytest.mark.parametrize(
    ("given", "effect", "blocks"),
    [
        ("error", "blocks the merge, and nobody can waive it", True),
        ("warn", "does not block", False),
        ("pass", "", False),
    ],
)
def test_the_effect_of_other_verdicts(given: Verdict, effect: str, blocks: bool) -> None:
    """A waiver or a record that names the check changes nothing: only a failure can be waived."""
    fields = {"waived": [WAIVED], "approval": ApprovalRecord(required=1, to_waive=[TO_WAIVE])}
    shown = view_verdicts(result(verdict(2, given), **fields), None)
    (view,) = (*shown.notable, *shown.others)
    assert (view.effect, view.blocks) == (effect, blocks)


def test_the_columns_of_the_check_come_first_and_are_marked() -> None:
    sample = [{"a": 1, "id": None, "b": True}, {"a": 2, "b": False, "id": "x"}]
    (view,) = view_verdicts(result(verdict(0, "fail", failed_rows=9, observed=9, sample=sample)), REQUEST).notable
    assert view.bad_rows
    assert (view.bad_rows.columns, view.bad_rows.marked) == (["id", "a", "b"], frozenset({"id"}))
    assert view.bad_rows.rows == [["null", "1", "true"], ["x", "2", "false"]]
    assert (view.bad_rows.total, view.bad_rows.numeric) == (9, frozenset({"a"}))
    assert view_verdicts(result(verdict(0, "fail", observed=1)), REQUEST).notable[0].bad_rows is None


QUERY = BadRowsQuery(sql="SELECT *\nFROM t.x\nWHERE id IS NULL", dialect="duckdb")
NEW_TABLE = {"t.x": TableChange(operation="append", created=True)}


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({}, "python run_workflow.py query SQL --ref r"),
        ({"outcome": "quarantined", "branch": "q"}, "python run_workflow.py query SQL --ref r"),
        ({"outcome": "published"}, "python run_workflow.py query SQL"),
        ({"outcome": "quarantined"}, None),
        ({"outcome": "discarded", "branch": "b"}, None),
    ],
)
def test_the_query_for_the_bad_rows_says_where_they_are(fields: dict[str, Any], command: str | None) -> None:
    check = verdict(0, "fail", observed=1, failed_rows=1, bad_rows_query=QUERY)
    (view,) = view_verdicts(result(check, tables=NEW_TABLE, **fields), REQUEST).notable
    assert (view.query and view.query.command) == command
    assert view.query is None or (view.query.sql, view.query.notes) == (QUERY.sql, "")


def test_the_query_says_that_main_may_have_had_bad_rows_before() -> None:
    spark = QUERY.model_copy(update={"dialect": "spark"})
    check = verdict(0, "fail", observed=1, failed_rows=1, bad_rows_query=spark)
    (view,) = view_verdicts(result(check), REQUEST).notable
    assert (
        view.query
        and not view.query.command
        and view.query.notes
        == (
            "This is Spark SQL: run it in a session on the branch of this run. "
            "It also returns bad rows that main had before this run."
        )
    )
    (whole,) = view_verdicts(result(check.model_copy(update={"scope": "table"})), REQUEST).notable
    assert whole.query and "main had" not in whole.query.notes
    assert view_verdicts(result(verdict(0, "fail", observed=1)), REQUEST).notable[0].query is None


def test_hostile_values_are_cut_and_secrets_are_hidden() -> None:
    sample = [{"id": "x" * 5000, "a": "password=hunter22", "b": [1, {"c": "y" * 500}]}]
    check = verdict(0, "fail", observed={"worst": "z" * 5000}, sample=sample)
    (view,) = view_verdicts(result(check), REQUEST).notable
    assert view.bad_rows and max(map(len, view.bad_rows.rows[0])) == 120
    assert "hunter22" not in json.dumps(view.bad_rows.rows) and "[hidden]" in view.bad_rows.rows[0][1]
    assert len(view.observed) == 120 and len(view.sentence) < 140


def test_what_the_audit_did_not_reach_is_known_from_the_request_alone() -> None:
    assert view_verdicts(result(), REQUEST).others == [], "a run under way may still reach it"
    assert [each.check for each in view_verdicts(result(outcome="failed"), REQUEST).others] == [
        "not_null(id)", "unique(id)", "not_null(name)", "row_count", "unique(name)",
    ]  # fmt: skip
    assert view_verdicts(result(), None).counts == []
    assert view_verdicts(result(outcome="skipped"), REQUEST).counts == []


def test_a_verdict_on_no_check_of_the_pipeline() -> None:
    """A run can fail with a verdict of its own, and a table can be unknown to the pipeline."""
    own = CheckResult(table="t.other", index=-1, check="schema", columns=[], verdict="fail", observed="changed")
    (view,) = view_verdicts(result(own), REQUEST).notable
    assert (view.severity, view.effect, view.sentence) == ("", "blocks the merge", "Observed changed")
