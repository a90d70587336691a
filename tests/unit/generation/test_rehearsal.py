"""Rehearsals: the distribution of faults over few batches, and the evaluation of their runs' verdicts."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from generation.judging import Judge
from generation.rehearsal import RehearsalPlan, plan_rehearsal
from generation.rehearsed import not_planted, refused_good_rows, rehearsal_exit_code, rehearsed_batch
from generation.requests import Request, checks_of, shape_of
from runtime.pipeline.rehearsals import check_rehearsable, rehearsal_copy
from runtime.pipeline.row_engine import DuckDBRows
from sluice.checks.verdicts import CheckResult, Verdict
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.write_modes import WRITE_MODES

NOW = datetime(2024, 6, 1, tzinfo=timezone.utc)
ENGINE = DuckDBRows()


def pipeline(checks: str, more: str = "") -> Pipeline:
    return parse_pipeline(
        f"""
name: p
write:
  source: {{path: "in/*.csv", schema: "id INT, s STRING, x DOUBLE"}}
  {more}
tables:
  t.p:
    checks: [{checks}]
""",
        "p.yml",
    )


def plan_of(made: Pipeline, rows: int = 100) -> tuple[RehearsalPlan, Judge]:
    request = Request("t.p", shape_of(made), checks_of(made), rows, 7, False, NOW)
    return plan_rehearsal(request, ENGINE), Judge(request.shape, request.checks, ENGINE, NOW)


def test_faults_share_a_batch_only_while_each_verdict_is_attributable() -> None:
    made = pipeline(
        "not_null: id, unique: id, not_null: s, not_null_proportion: {column: s, min: 0.5}, "
        "accepted_range: {column: x, min: 0, max: 9}, row_count: {min: 50}, "
        "sql: {name: mine, query: SELECT max(id) FROM t.p HAVING max(id) < 0}, row_count: {min: 1}"
    )
    plan, judge = plan_of(made)
    assert [{fault.index for fault in batch.faults} for batch in plan.batches] == [{0, 1, 2, 4}, {3}, {5}]
    assert set(plan.left_out) == {6, 7} and "query of your own" in plan.left_out[6]
    accepted = [each.accepts for each in judge.judge(plan.good)]
    assert all(accepted)
    for batch in plan.batches:
        judged = judge.judge(batch.rows)
        planted = {fault.index for fault in batch.faults}
        assert planted <= {index for index, each in enumerate(judged) if not each.accepts}
    for fault in plan.batches[0].faults:
        alone = {index for index, each in enumerate(judge.judge(fault.rows)) if not each.accepts}
        assert alone == {fault.index}


def verdict(index: int, text: Verdict) -> CheckResult:
    return CheckResult(table="t.p", index=index, check="c", columns=[], verdict=text, observed=1, expected="none")


@pytest.mark.parametrize(
    ("severity", "verdict_of_run", "result", "code"),
    [
        ("fail", "fail", "caught", 0),
        ("fail", "warn", "not caught", 3),
        ("fail", "pass", "not caught", 3),
        ("fail", "error", "not rehearsed", 4),
        ("fail", None, "not rehearsed", 4),
        ("warn", "warn", "caught", 0),
        ("warn", "pass", "not caught", 3),
    ],
)
def test_the_result_of_a_check(severity: str, verdict_of_run: Verdict | None, result: str, code: int) -> None:
    made = pipeline(f"not_null: {{column: id, severity: {severity}}}")
    plan, _ = plan_of(made)
    verdicts = {} if verdict_of_run is None else {0: verdict(0, verdict_of_run)}
    (batch,) = plan.batches
    (check,) = rehearsed_batch(plan, batch, checks_of(made), verdicts, "the run ended failed").values()
    assert (check.result, rehearsal_exit_code([check])) == (result, code)
    assert check.fault and bool(check.why) == (result != "caught")


def test_a_check_that_refuses_good_rows_is_named_and_nothing_follows_for_the_others() -> None:
    plan, _ = plan_of(pipeline("not_null: id, not_null: s, row_count: {min: 1}"))
    refused = refused_good_rows(plan, {0: verdict(0, "fail"), 1: verdict(1, "pass")})
    results = {index: each.result for index, each in {**not_planted(plan), **refused}.items()}
    assert results == {0: "refuses good rows", 1: "not rehearsed", 2: "not rehearsed"}
    assert rehearsal_exit_code([*refused.values()]) == 3
    assert refused_good_rows(plan, {0: verdict(0, "pass"), 1: verdict(1, "warn")}) == {}


def test_the_copy_tells_nobody_and_has_the_checks_with_a_fault() -> None:
    made = pipeline("not_null: id, row_count: {min: 1}", "mode: merge\n  keys: [id]")
    copy = rehearsal_copy(made, "/tmp/1.csv", {1: "no fault"})
    assert (copy.name, copy.write.mode, copy.write.keys, copy.on_failure) == ("p-rehearsal", "overwrite", [], "discard")
    assert copy.write.source and copy.write.source.path == "/tmp/1.csv"
    assert [check.check for check in copy.tables["t.p"].checks] == ["not_null"]
    assert Pipeline.model_validate(copy.model_dump(by_alias=True)) == copy, "it is valid"


_OF_TABLE = ["", "partition_by: [id], sort_by: [id], comments: {id: c}, on_bad_rows: quarantine, max_bad_rows: 5, "]
_OF_WRITE = {
    "attempts: 2": (),
    "on_conflict: rebase": ("append",),
    "on_conflict: rewrite": (),
    "transform: SELECT * FROM source": (),
    "conf: {spark.sql.shuffle.partitions: 2}": (),
}
"""The options of a write, and the modes that accept them. Empty stands for all modes."""
_OF_SOURCE = ["", ", loaded: skip", ", loaded: refuse", ", loaded: reload", ", format: csv, options: {header: 'true'}"]


@pytest.mark.parametrize("mode", [mode for mode, each in WRITE_MODES.items() if "source" in each.required])
@pytest.mark.parametrize("of_table", _OF_TABLE)
@pytest.mark.parametrize("of_source", _OF_SOURCE)
def test_the_copy_of_every_pipeline_that_loads_files_is_valid(mode: str, of_table: str, of_source: str) -> None:
    """If a worker refused the copy, its run would never end."""
    needed = "keys: [id], " if mode == "merge" else ""
    if mode == "overwrite_partitions" and not of_table:
        of_table = "partition_by: [id], "
    for option in [each for each, modes in _OF_WRITE.items() if not modes or mode in modes]:
        made = parse_pipeline(
            f"""
name: p
write: {{source: {{path: "in/*.csv", schema: "id INT"{of_source}}}, mode: {mode}, {needed}{option}}}
tables: {{t.p: {{{of_table}checks: [not_null: id, row_count: {{min: 1}}]}}}}
approval: {{required: 2}}
on_failure: quarantine
""",
            "p.yml",
        )
        check_rehearsable(made)
        copy = rehearsal_copy(made, "/tmp/1.csv", {1: "no fault"})
        assert Pipeline.model_validate_json(copy.model_dump_json(by_alias=True)) == copy
        assert (copy.write.mode, copy.write.on_conflict, copy.write.loaded_files) == ("overwrite", "auto", "reload")


def test_a_copy_that_no_worker_would_accept_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRITE_MODES, "overwrite", replace(WRITE_MODES["overwrite"], required=frozenset({"keys"})))
    with pytest.raises(InvalidPipeline, match="cannot be rehearsed by `mode: overwrite`: Value error"):
        rehearsal_copy(pipeline("not_null: id"), "/tmp/1.csv", {})


def test_what_cannot_be_rehearsed_is_refused() -> None:
    with pytest.raises(InvalidPipeline, match="no checks"):
        check_rehearsable(pipeline(""))
