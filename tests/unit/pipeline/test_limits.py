"""The limits of a pipeline: it works up to the limit, and is refused above it with a message that names the limit."""

import time
from collections.abc import Mapping

import pytest

from sluice.audit.query_builder import AuditQuery
from sluice.checks.base import CheckQuery, Evaluation, pass_or_fail
from sluice.checks.results import AnswerSource, check_result, error_result
from sluice.checks.verdicts import short_verdicts, trim_samples, verdicts_digest
from sluice.contracts.audit import AuditInput, AuditResult, ScanInput
from sluice.contracts.references import RunRef
from sluice.contracts.run import RecordRunInput, RunResult, RunStatus, StageEvent
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.limits import MAX_CHECKS, MAX_FILE_BYTES, MAX_PIPELINE_BYTES
from sluice.pipeline.model import Pipeline
from sluice.sql.dialect import DUCKDB

_HEAD = "name: big\nwrite: {source: {path: a.csv}}\ntables:\n  n.t:\n    checks:\n"
_PAYLOAD = 2 * 1024**2
"""Temporal's maximum size of one payload, in bytes."""


def refusal(text: str) -> str:
    with pytest.raises(InvalidPipeline) as raised:
        parse_pipeline(text, "p.yml")
    return str(raised.value)


def test_a_file_of_fifty_megabytes_is_refused_at_once() -> None:
    started = time.monotonic()
    assert f"the limit is {MAX_FILE_BYTES:,}" in refusal(_HEAD + "#" * 50_000_000)
    assert time.monotonic() - started < 60, "it was read"


@pytest.mark.parametrize("text", ["[" * 400_000, "- " * 100_000 + "a", "{a: " * 100_000])
def test_deep_nesting_is_refused(text: str) -> None:
    assert "it nests more than 50 levels deep, which is the limit" in refusal("name: deep\nwrite:\n  " + text)


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    assert "has more than 200,000 values, which is the limit" in refusal("\n".join(lines))


def test_too_many_checks_are_refused() -> None:
    columns = ", ".join(f"c{number}" for number in range(MAX_CHECKS + 1))
    assert "5,001 checks are too many for one pipeline: the limit is 5,000" in refusal(
        f"{_HEAD}      - not_null: [{columns}]\n"
    )


def test_messages_of_a_run_with_all_checks_fit_into_temporal_s_payloads() -> None:
    columns = ", ".join(f"column_{number}" for number in range(MAX_CHECKS))
    pipeline = parse_pipeline(f"{_HEAD}      - not_null: [{columns}]\n", "pipelines/big.yml")
    table = pipeline.tables["n.t"]
    sample = [{f"column_{number}": "x" * 100 for number in range(12)}] * 5
    verdicts = trim_samples(
        [
            check_result(
                "n.t", index, check, pass_or_fail(False, 12345, 12345), AnswerSource("duckdb", sample, 99, 10**9)
            )
            for index, check in enumerate(table.checks)
        ]
    )
    run_ref = RunRef(run_id="r" * 36, workflow_id="w" * 90, pipeline="big", label="big", attempt=1)
    messages = [
        RunRequest(pipeline=pipeline, input=RunInput(digest="0" * 64), starter="somebody@host"),
        AuditInput(run_ref=run_ref, branch="b" * 100, base="0" * 64, head="0" * 64, tables=pipeline.tables),
        AuditResult(decided=verdicts),
        RunResult(run_id="r" * 36, workflow_id="w" * 90, pipeline="big", checks=verdicts),
    ]
    for message in messages:
        assert len(message.model_dump_json(by_alias=True).encode()) < 0.8 * _PAYLOAD, type(message)


def test_twenty_thousand_accepted_values_are_read() -> None:
    values = ", ".join(f"value-{number}" for number in range(20_000))
    pipeline = parse_pipeline(f"{_HEAD}      - accepted_values: {{column: c, values: [{values}]}}\n", "p.yml")
    assert len(pipeline.model_dump_json()) < 0.5 * _PAYLOAD


def largest_pipeline() -> Pipeline:
    """Return a pipeline with the maximum number of checks and the maximum size."""
    text = _HEAD
    for number in range(MAX_CHECKS):
        text += f"      - expression_is_true: c{number:04} > '{'ä' * 40}'\n"
    pipeline = parse_pipeline(text, "pipelines/big.yml")
    assert 0.98 * MAX_PIPELINE_BYTES < len(pipeline.model_dump_json().encode()) <= MAX_PIPELINE_BYTES
    return pipeline


def test_a_run_of_the_largest_pipeline_fits_into_temporal_s_payloads_however_long_its_errors_are() -> None:
    pipeline = largest_pipeline()
    checks = pipeline.tables["n.t"].checks
    long = "\x01Spark cannot answer: " + "ä plan of many lines\n" * 100
    evaluation = Evaluation(level="fail", observed=[long], failed_rows=10**12)
    source = AnswerSource("spark", [{"c": "x"}], 99_999, 10**13)
    error = error_result("n.t", 0, checks[0], long)
    verdicts = [
        error.model_copy(update={"index": index, "expected": check.expected})
        if index % 2
        else check_result("n.t", index, check, evaluation, source)
        for index, check in enumerate(checks)
    ]
    short = trim_samples(short_verdicts(verdicts, len(checks)))
    run_ref = RunRef(run_id="r" * 36, workflow_id="w" * 90, pipeline="big", label="big", attempt=1)
    audit = AuditInput(run_ref=run_ref, branch="b" * 100, base="0" * 64, head="0" * 64, tables=pipeline.tables)
    result = RunResult(run_id="r" * 36, workflow_id="w" * 90, pipeline="big", checks=short)
    for message in (
        RunRequest(pipeline=pipeline, input=RunInput(digest="0" * 64), starter="somebody@host"),
        ScanInput(audit=audit, undecided={"n.t": list(range(len(checks)))}),
        AuditResult(decided=short),
        RecordRunInput(run_ref=run_ref, result=result, ended_at=""),
        RunStatus(stage="ended", events=[StageEvent(stage="ended", at="", note="x" * 1000)] * 50, result=result),
    ):
        assert len(message.model_dump_json(by_alias=True).encode()) < 0.95 * _PAYLOAD, type(message)


def test_short_verdicts_keep_what_decides_and_are_the_same_when_they_are_shortened_again() -> None:
    (check,) = parse_pipeline(f"{_HEAD}      - expression_is_true: c > 0\n", "p.yml").tables["n.t"].checks
    plain = check_result("n.t", 0, check, pass_or_fail(False, 5, 5), AnswerSource("duckdb"))
    assert short_verdicts([plain], 1) == [plain]
    long = error_result("n.t", 0, check, "because " * 10_000)
    (short,) = short_verdicts([long], 1)
    assert short.message.startswith("because because") and short.message.endswith("…")
    assert 1_000 < len(short.message) < 4_000 and short.blocks
    for checks in (1, 100, MAX_CHECKS):
        once = short_verdicts([long], checks)
        assert short_verdicts(once, checks) == once
        assert verdicts_digest(trim_samples(once)) == verdicts_digest(once)


def test_a_pipeline_that_no_message_holds_is_refused() -> None:
    """Aliases make a short file long."""
    values = ", ".join(f"{number:0100}x" for number in range(100))
    check = "      - accepted_values: {column: c, values: "
    checks = f"{check}&v [{values}]}}\n" + f"{check}*v}}\n" * 150
    assert "bytes, too large for Temporal's messages: the limit is 1,400,000" in refusal(_HEAD + checks)


def test_all_present_takes_as_many_values_as_a_query_counts() -> None:
    values = ", ".join(f"v{number}" for number in range(501))
    check = f"      - accepted_values: {{column: c, all_present: true, values: [{values}]}}\n"
    assert "all_present counts each of 501 values separately: the limit is 500" in refusal(_HEAD + check)


def test_one_query_asks_a_part_of_many_checks_and_one_error_costs_few_queries() -> None:
    """Engines fail on thousands of expressions. One wrong check must not require a query for every other check."""
    asked: list[str] = []

    def run(sql: str) -> list[dict[str, object]]:
        asked.append(sql)
        if "wrong" in sql:
            raise ValueError("wrong")
        return [{**{f"q{number}": 0 for number in range(sql.count("count_if"))}, "sluice_n": 1}]

    queries: Mapping[str, CheckQuery] = {
        str(number): CheckQuery(bad="wrong" if number == 777 else f"c{number} IS NULL") for number in range(2_000)
    }
    answers = AuditQuery(run, DUCKDB, {}, queries, False, 0, error_message=str).answers()
    assert [key for key, answer in answers.items() if answer.error] == ["777"]
    assert len(answers) == 2_000 and len(asked) < 40
    assert max(sql.count("count_if") for sql in asked) <= 500
