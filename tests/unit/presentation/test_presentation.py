"""Times, decisions and states in messages have one form everywhere."""

import re
from datetime import datetime, timedelta, timezone

import pytest

from cli.lake.results import _cell
from devstack.stack import ROOT
from lakehouse.audit.results_table import _schema
from sluice.approval.decisions import ApprovalRecord, Decision
from sluice.contracts.existing_rows import Resume
from sluice.contracts.run import RunResult, RunStatus
from sluice.presentation.decisions import describe_decisions, describe_excluded, describe_state, describe_wait
from sluice.publishing.release import describe_untouched_quarantine, name_failed_statement
from sluice.times import format_expiry, format_time

AT = "2026-11-22T07:40:11.123+00:00"
ANA, BEN = Decision(approve=True, by="ana", at=AT), Decision(approve=False, by="ben", at=AT, reason="not yet")


def waiting(required: int, *decisions: Decision, excluded: str = "") -> RunStatus:
    approval = ApprovalRecord(required=required, decisions=list(decisions), excluded=excluded)
    result = RunResult(run_id="r", workflow_id="w", pipeline="p", approval=approval)
    return RunStatus(stage="waiting for approval", events=[], result=result, deadline="2026-11-22T07:45:00+00:00")


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-11-22T07:45:59+00:00", "2026-11-22 07:45 UTC"),
        ("2026-11-22T07:45:59Z", "2026-11-22 07:45 UTC"),
        ("2026-11-22T09:45:59.5+02:00", "2026-11-22 07:45 UTC"),
        ("2026-11-22T07:45:59", "2026-11-22 07:45 UTC"),
        ("2026-11-22T07:45:59.123456789", "2026-11-22 07:45 UTC"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+01:00"),
        (datetime(2026, 11, 22, 9, 45, tzinfo=timezone(timedelta(hours=2))), "2026-11-22 07:45 UTC"),
        ("noon", "noon"),
        ("", ""),
    ],
)
def test_a_time_is_in_utc_to_the_minute(time: str | datetime, text: str) -> None:
    assert format_time(time) == text


def test_an_expired_time_is_marked() -> None:
    for time in ("2020-01-31T10:30:00+00:00", "2020-01-31T10:30:00", "2020-01-31T10:30:00Z"):
        assert format_expiry(time) == "2020-01-31 10:30 UTC (expired)"
    assert format_expiry("9000-01-31T10:30:00+00:00") == "9000-01-31 10:30 UTC"
    assert format_expiry("unknown") == "unknown"


def test_a_wait_says_how_many_decided_and_how_many_are_missing() -> None:
    assert describe_wait(waiting(2)) == "0 of 2 approvals, waits until 2026-11-22 07:45 UTC"
    assert describe_wait(waiting(2, ANA)) == "1 of 2 approvals, waits until 2026-11-22 07:45 UTC"
    assert describe_wait(waiting(4, ANA)) == "1 of 4 approvals, waits until 2026-11-22 07:45 UTC"
    assert describe_wait(waiting(1, ANA)) == "1 of 1 approval"
    assert describe_excluded(waiting(1, excluded="ben")) == "ben started the run and may not decide"
    assert not describe_excluded(waiting(1))
    assert describe_state(waiting(2, ANA)) == "waiting for approval (1 of 2)"
    assert describe_state(waiting(2).model_copy(update={"stage": "publishing"})) == "publishing"


def test_a_rejection_is_not_an_approval() -> None:
    record = ApprovalRecord(required=2, decisions=[ANA, BEN])
    assert describe_decisions(record) == (
        "approved by ana at 2026-11-22 07:40 UTC; rejected by ben at 2026-11-22 07:40 UTC: not yet"
    )
    assert describe_decisions(None) == describe_decisions(ApprovalRecord(required=1)) == ""
    assert describe_wait(waiting(2, ANA, BEN)).startswith("1 of 2")


def test_cells_of_results_read_as_what_they_are() -> None:
    values = [["id", "day"], [], None, 3, "pass", "2026-11-22 07:45:59.123456"]
    assert [_cell("observed", value) for value in values] == ["id, day", "", "", "3", "pass", values[-1]]
    assert _cell("ended_at", "2026-11-22 07:45:59.123456+00:00") == "2026-11-22 07:45 UTC"


def test_each_column_of_the_results_is_documented() -> None:
    """`results` prints the columns of the audit results table, and docs/audit.md describes each."""
    section = (ROOT / "docs" / "audit.md").read_text().split("## Reports and results")[1]
    documented = {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert documented == {field.name for field in _schema().fields}


def test_what_a_refused_repair_leaves() -> None:
    resume = Resume(branch="quarantine/p/d/r", run_id="r", base="b", head="h")
    assert describe_untouched_quarantine(resume) == (
        "the quarantine quarantine/p/d/r is untouched: repair it, or release it again"
    )
    repaired = resume.model_copy(update={"statements": ["UPDATE t.x SET a = 1"]})
    assert describe_untouched_quarantine(repaired).endswith("is untouched: repair it again")


@pytest.mark.parametrize(
    ("statements", "reason", "shown"),
    [
        (
            ["UPDATE t.x SET a = 1", "UPDATE t.x\n SET nme = 'Ana' WHERE b > 7"],
            "statement 2: there is no column `nme`",
            "statement 2 (UPDATE t.x SET nme = …): there is no column `nme`",
        ),
        (["DELETE FROM t.x"], "[PARSE] no", "statement 1 (DELETE FROM t.x): [PARSE] no"),
        (["a", "b"], "[PARSE] no", "[PARSE] no"),
        (["a"], "statement 7: no", "statement 7: no"),
        ([], "no worker", "no worker"),
    ],
)
def test_the_statement_of_a_repair_that_failed_is_named(statements: list[str], reason: str, shown: str) -> None:
    resume = Resume(branch="quarantine/p/d/r", run_id="r", base="b", head="h", statements=statements)
    assert name_failed_statement(reason, resume) == shown
