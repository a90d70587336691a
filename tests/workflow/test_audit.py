"""The order of steps in an audit: the choice of the engine, and the treatment of bad rows."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from sluice.checks.verdicts import CheckResult, verdicts_digest
from sluice.contracts.audit import AuditInput, AuditResult, QuarantineRowsInput, QuarantineRowsResult
from sluice.contracts.publish import Publication
from sluice.contracts.quarantine import QuarantineBranchInput
from sluice.contracts.run import Notification, RecordRunInput
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import VerifyWriteInput, WriteResult
from sluice.publishing.commit_properties import AUDITED, REASON, VERDICTS
from tests.harness.slack import blocks, headline
from tests.harness.waiting import in_time
from tests.harness.workflow import HEAD, MERGED, WorkflowHarness, fails_with_a_bug
from workflows.write_audit_publish import WriteAuditPublish

PARTED: dict[str, Any] = {
    "write": {"source": {"path": "/in.csv"}},
    "tables": {
        "t.x": {"on_bad_rows": "quarantine", "max_bad_rows": 5, "checks": [{"check": "not_null", "column": "a"}]},
    },
}


def _bad_once(verdict: str = "fail") -> Callable[[Any, int], Any]:
    async def audit(_: Any, call: int) -> AuditResult:
        bad = CheckResult(table="t.x", index=0, check="not_null", columns=["a"], verdict=verdict, failed_rows=2)
        return AuditResult(decided=[bad if call == 1 else bad.model_copy(update={"verdict": "pass"})])

    return audit


async def test_bad_rows_are_quarantined_and_the_rest_audited_again(harness: WorkflowHarness) -> None:
    second: list[bool] = []

    async def audit(input: Any, call: int) -> AuditResult:
        second.append(input["rows_were_quarantined"])
        return await _bad_once()(input, call)  # type: ignore[no-any-return]

    harness.fakes.overrides["audit_branch"] = audit
    result = await harness.end(await harness.start(**PARTED))
    assert second == [False, True]  # a job of the second audit needs another name than one of the first
    assert (result.outcome, result.bad_rows) == ("published", {"t.x": 2})
    assert "2 bad rows of t.x went to t.x__quarantine" in result.reason
    middle = ["verify_write", "audit_branch", "quarantine_rows", "verify_write", "audit_branch", "require_approval"]
    first = harness.fakes.calls.index("verify_write")
    assert harness.fakes.calls[first : first + 7] == [*middle, "publish_branch"]


async def test_an_audit_knows_that_rows_are_requeued(harness: WorkflowHarness) -> None:
    requeued: list[bool] = []

    async def audit(input: Any, _: int) -> AuditResult:
        requeued.append(input["requeued"])
        return AuditResult(decided=[])

    harness.fakes.overrides["audit_branch"] = audit
    tables: dict[str, Any] = {"t.x": {}, "t.x__quarantine": {}}
    for write in ({"mode": "requeue", "statements": ["INSERT INTO t.x SELECT 1"]}, {"source": {"path": "/in.csv"}}):
        result = await harness.end(await harness.start(write=write, tables=tables if "mode" in write else {"t.x": {}}))
        assert result.outcome == "published"
    assert requeued == [True, False]


async def test_above_the_cap_nothing_is_published(harness: WorkflowHarness) -> None:
    async def too_many(_: Any, __: int) -> QuarantineRowsResult:
        return QuarantineRowsResult(bad_rows={"t.x": 9}, above_cap={"t.x": None})

    harness.fakes.overrides |= {"audit_branch": _bad_once(), "quarantine_rows": too_many}
    result = await harness.end(await harness.start(**PARTED))
    assert (result.outcome, result.cause) == ("quarantined", "audit")
    assert "more bad rows than the pipeline allows to quarantine: 9 of t.x" in result.reason


@pytest.mark.parametrize("above", [False, True])
async def test_the_cap_and_the_report_count_the_rows_of_the_audit_before_a_rebase(
    harness: WorkflowHarness, above: bool
) -> None:
    moved: list[QuarantineRowsInput] = []
    verified: list[dict[str, int]] = []

    async def audit(_: Any, call: int) -> AuditResult:
        return await _bad_once()(None, 1 if call in (1, 3) else 2)  # type: ignore[no-any-return]

    async def move(input: Any, call: int) -> QuarantineRowsResult:
        moved.append(QuarantineRowsInput.model_validate(input))
        left = {"t.x": 0} if above and call == 2 else {}
        return QuarantineRowsResult(bad_rows={"t.x": call}, broken_checks={"t.x": {"b": call}}, above_cap=left)

    async def verify(input: VerifyWriteInput, _: int) -> WriteResult:
        verified.append(input.quarantined_rows)
        return WriteResult(head=HEAD, tables={"t.x": TableChange(operation="append")})

    async def conflict_once(_: Any, call: int) -> Publication:
        return MERGED if call > 1 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides |= {"audit_branch": audit, "quarantine_rows": move, "verify_write": verify}
    harness.fakes.overrides["publish_branch"] = conflict_once
    result = await harness.end(await harness.start(**PARTED))
    assert [each.moved_before for each in moved] == [{}, {"t.x": 1}]
    if above:
        assert (result.outcome, result.bad_rows) == ("quarantined", {"t.x": 1})
        assert "3 of t.x (the pipeline allows 1)" in result.reason
        return
    assert (result.outcome, result.bad_rows, result.broken_checks) == ("published", {"t.x": 3}, {"t.x": {"b": 3}})
    assert "3 bad rows of t.x went to t.x__quarantine (b 3)" in result.reason
    assert verified == [{}, {"t.x": 1}, {"t.x": 2}]  # the branch of the rebase has the rows of the first move already


async def test_an_attempt_that_breaks_off_while_rows_are_quarantined_is_rewritten(harness: WorkflowHarness) -> None:
    async def breaks_once(_: Any, call: int) -> QuarantineRowsResult:
        if call == 1:
            raise ApplicationError("Spark was killed", type="JobFailed")
        return QuarantineRowsResult(bad_rows={"t.x": 2})

    async def always_bad(_: Any, call: int) -> AuditResult:
        return await _bad_once()(None, 1 if call in (1, 2) else 3)  # type: ignore[no-any-return]

    harness.fakes.overrides |= {"audit_branch": always_bad, "quarantine_rows": breaks_once}
    result = await harness.end(await harness.start(**PARTED))
    assert (result.outcome, result.attempts) == ("published", 2)
    assert harness.fakes.calls.count("write_table") == 2


async def test_an_error_is_no_bad_row(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["audit_branch"] = _bad_once("error")
    result = await harness.end(await harness.start(**PARTED))
    assert (result.outcome, "quarantine_rows" in harness.fakes.calls) == ("quarantined", False)


async def test_sql_in_checks_is_read_inside_the_workflow(harness: WorkflowHarness) -> None:
    """The workflow sandbox refuses modules that a parser imports at its first use."""
    checks = [
        {"check": "not_null", "column": "a", "where": "b > 1 AND c IN ('x', `d e`) OR length(f) > 2"},
        {"check": "expression_is_true", "expression": "d >= DATE '2024-01-01' - INTERVAL 1 DAY"},
        {"check": "sql", "query": "WITH a AS (SELECT 1) SELECT * FROM t.x JOIN a ON true WHERE y RLIKE 'z'"},
        {"check": "match_regex", "column": "a", "pattern": "^a.*$"},
    ]

    async def pass_all(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=_passed(*range(len(checks))))

    harness.fakes.overrides["audit_branch"] = pass_all
    result = await harness.end(await harness.start(tables={"t.x": {"checks": checks}}))
    assert result.outcome == "published"


async def test_a_check_without_a_verdict_blocks(harness: WorkflowHarness) -> None:
    async def plan(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=_passed(0), files={"t.x": [1]}, undecided={"t.x": [2]})

    async def hands_back(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=[], undecided={"t.x": [1]})

    async def hands_back_too(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=_passed(1), undecided={"t.x": [2]})

    harness.fakes.overrides |= {"audit_branch": plan, "scan_files": hands_back, "scan_branch": hands_back_too}
    checks = [{"check": "unique", "column": column} for column in "abc"]
    result = await harness.end(await harness.start(tables={"t.x": {"checks": checks}}))
    assert (result.outcome, result.cause) == ("quarantined", "audit")
    assert "unique(c) of t.x: no engine answered it" in result.reason
    assert [(each.index, each.verdict) for each in result.checks] == [(0, "pass"), (1, "pass"), (2, "error")]


def _passed(*indexes: int) -> list[CheckResult]:
    return [CheckResult(table="t.x", index=index, check="x", columns=[], verdict="pass") for index in indexes]


async def test_what_duckdb_hands_back_goes_to_spark(harness: WorkflowHarness) -> None:
    async def plan(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=[], files={"t.x": [0, 1]}, undecided={"t.x": [2]})

    async def hands_back(order: Any, __: int) -> AuditResult:
        assert order["undecided"] == {"t.x": [0, 1]}
        return AuditResult(decided=[], undecided={"t.x": [1]})

    async def by_spark(order: Any, __: int) -> AuditResult:
        assert order["undecided"] == {"t.x": [2, 1]}
        return AuditResult(decided=[])

    harness.fakes.overrides |= {"audit_branch": plan, "scan_files": hands_back, "scan_branch": by_spark}
    assert (await harness.end(await harness.start())).outcome == "published"
    assert harness.fakes.calls.count("scan_branch") == 1


async def test_an_error_of_a_check_blocks(harness: WorkflowHarness) -> None:
    async def error_result(_: Any, __: int) -> AuditResult:
        check = CheckResult(table="t.x", check="unique", columns=["a"], verdict="error", message="no answer")
        return AuditResult(decided=[check])

    harness.fakes.overrides["audit_branch"] = error_result
    result = await harness.end(await harness.start())
    assert (result.outcome, result.cause) == ("quarantined", "audit")
    assert "unique(a) of t.x: no answer" in result.reason


async def test_the_audited_hash_is_empty_until_the_audit_has_finished(harness: WorkflowHarness) -> None:
    scanning, go_on = asyncio.Event(), asyncio.Event()

    async def plan(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=[], undecided={"t.x": [0]})

    async def slow_scan(_: Any, __: int) -> AuditResult:
        scanning.set()
        await go_on.wait()
        return AuditResult(decided=[])

    harness.fakes.overrides |= {"audit_branch": plan, "scan_branch": slow_scan}
    handle = await harness.start()
    await in_time(scanning.wait())
    status = await handle.query(WriteAuditPublish.status)
    assert (status.stage, status.result.audited_hash, status.audit_digest) == ("scanning", None, "")
    go_on.set()
    assert (await harness.end(handle)).audited_hash == HEAD


async def test_a_run_that_was_never_audited_has_no_audited_hash_and_keeps_its_head(harness: WorkflowHarness) -> None:
    recorded: list[RecordRunInput] = []
    quarantined: list[QuarantineBranchInput] = []

    async def quarantine(input: QuarantineBranchInput, _: int) -> str:
        quarantined.append(input)
        return input.name

    async def record(input: RecordRunInput, _: int) -> str:
        recorded.append(input)
        return "report.json"

    harness.fakes.overrides |= {"audit_branch": fails_with_a_bug, "record_run": record, "quarantine_branch": quarantine}
    result = await harness.end(await harness.start())
    assert (result.outcome, result.audited_hash) == ("failed", None)
    assert [(each.result.audited_hash, each.head) for each in recorded] == [(None, HEAD)]
    assert [(each.head, AUDITED in each.properties) for each in quarantined] == [(HEAD, False)]


async def test_a_quarantine_after_an_audit_carries_the_audited_hash(harness: WorkflowHarness) -> None:
    quarantined: list[QuarantineBranchInput] = []

    async def failed_check(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=[CheckResult(table="t.x", check="unique", columns=["a"], verdict="fail")])

    async def quarantine(input: QuarantineBranchInput, _: int) -> str:
        quarantined.append(input)
        return input.name

    harness.fakes.overrides |= {"audit_branch": failed_check, "quarantine_branch": quarantine}
    result = await harness.end(await harness.start())
    assert (result.outcome, result.audited_hash) == ("quarantined", HEAD)
    assert [(each.head, each.properties[AUDITED]) for each in quarantined] == [(HEAD, HEAD)]


SECRET = "4711-meier"
"""A value of a row."""


@pytest.mark.parametrize("show_values", [False, True])
async def test_no_value_of_a_row_leaves_the_report_unless_the_pipeline_says_so(
    harness: WorkflowHarness, show_values: bool
) -> None:
    """The value is not in the reason either, which lists, commits and Slack show."""
    quarantined: list[QuarantineBranchInput] = []
    notified: list[Notification] = []

    async def failed_check(_: Any, __: int) -> AuditResult:
        sample = [{"name": SECRET}]
        failed = CheckResult(table="t.x", check="max_in_range", columns=["name"], verdict="fail", observed=SECRET)
        return AuditResult(decided=[failed.model_copy(update={"sample": sample})])

    async def quarantine(input: QuarantineBranchInput, _: int) -> str:
        quarantined.append(input)
        return input.name

    async def notify(notification: Notification, _: int) -> None:
        notified.append(notification)

    harness.fakes.overrides |= {"audit_branch": failed_check, "quarantine_branch": quarantine, "notify": notify}
    result = await harness.end(await harness.start(show_values=show_values))
    shown = [result.reason, quarantined[0].properties[REASON], str(blocks(notified[0], "link")), headline(notified[0])]
    assert [SECRET in text for text in shown] == [show_values, show_values, show_values, False]
    assert SECRET in str(result.checks[0].sample), "the report has it in any case"
    assert quarantined[0].properties[VERDICTS] == verdicts_digest(result.checks)


async def test_verdicts_that_hold_over_a_rebase_come_from_the_history(harness: WorkflowHarness) -> None:
    """The lake is not read for them, since a job can write to it."""
    audits: list[AuditInput] = []
    row, whole = ({"check": "not_null", "column": "a"}, {"check": "row_count", "min": 1})

    async def audit(input: AuditInput, _: int) -> AuditResult:
        audits.append(input)
        checks = [("not_null", "a"), ("row_count", "")]
        return AuditResult(
            decided=[
                CheckResult(table="t.x", index=index, check=check, columns=[column], verdict="pass")
                for index, (check, column) in enumerate(checks)
            ]
        )

    async def conflict_once(_: Any, call: int) -> Publication:
        return MERGED if call > 1 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides |= {"audit_branch": audit, "publish_branch": conflict_once}
    handle = await harness.start(tables={"t.x": {"checks": [row, {**whole, "scope": "table"}]}})
    assert (await harness.end(handle)).outcome == "published"
    first, second = (AuditInput.model_validate(each) for each in audits)
    assert first.previous_audit is None and second.previous_audit
    assert [each.check for each in second.previous_audit.verdicts] == ["not_null"]
