"""Waivers: waivable checks, the decisions that waive them, and the end of waivers."""

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from sluice.approval.decisions import AwaitedDecision, Decision
from sluice.approval.signatures import signed_text
from sluice.approval.waivable import check_fingerprint, waivable_checks
from sluice.approval.waivers import (
    GRACE,
    MAX_DAYS,
    REASON_LIMIT,
    WaivableCheck,
    WaivedCheck,
    Waiver,
    choose_checks,
    parse_until,
    until_problem,
    waive_command,
    waiver_names,
)
from sluice.approval.waiving import (
    completed_waivers,
    ended_waivers,
    granted_waivers,
    secret_problem,
    unwaived_error,
    waiver_refusal,
)
from sluice.checks.base import Evaluation
from sluice.checks.results import AnswerSource, check_result
from sluice.checks.verdicts import verdicts_digest
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline
from tests.harness.waivers import NOT_NULL, NOW, OTHER, UNIQUE, UNTIL, WAIVED, WAIVER, parsed, verdict, yes

# Waivable checks


def test_failed_checks_that_say_so_may_be_waived_and_nothing_else() -> None:
    tables = parsed().tables
    assert waivable_checks([verdict(0), verdict(2, "pass")], tables, "p") == [UNIQUE]
    assert waivable_checks([verdict(0), verdict(1)], tables, "p") == [UNIQUE, NOT_NULL]
    assert waivable_checks([verdict(0, "warn"), verdict(1)], tables, "p") == [NOT_NULL]
    for blocking in (
        verdict(0, "error"),
        verdict(2),
        verdict(1, table="t.unknown"),
        verdict(0).model_copy(update={"index": -1}),
        verdict(0).model_copy(update={"index": 3}),
    ):
        assert waivable_checks([verdict(1), blocking], tables, "p") == [], blocking


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("", "# a comment\n", True),
        ("column: id, waivable: true", "column: id", True),
        ("unique: {column: id", "unique: {column: other", False),
        ("unique: {column: id", "unique: {column: id, where: id > 1", False),
        ("unique: {column: id", "unique: {column: id, scope: table", False),
        ("unique: {column: id", "unique: {column: id, mostly: 0.9", False),
    ],
)
def test_a_check_is_known_by_what_it_demands(old: str, new: str, is_same: bool) -> None:
    changed = parsed(old, new).tables["t.x"].checks[0]
    assert (check_fingerprint(changed, "p") == UNIQUE.fingerprint) is is_same


def test_a_fingerprint_is_the_same_after_a_message_of_temporal() -> None:
    again = Pipeline.model_validate_json(parsed().model_dump_json(by_alias=True))
    assert check_fingerprint(again.tables["t.x"].checks[0], "p") == UNIQUE.fingerprint


def test_a_query_is_known_by_its_name() -> None:
    """Without a name, all failed imported queries would have the same title."""
    query = "- sql: {query: SELECT 1 FROM t.x, name: no orphans, waivable: true}"
    text = f"name: p\nwrite: {{job: j.py}}\ntables:\n  t.x:\n    checks:\n      {query}\n"
    tables = parse_pipeline(text, "p.yml").tables
    (check,) = tables["t.x"].checks
    failed = check_result("t.x", 0, check, Evaluation(level="fail", observed=1), AnswerSource("spark"))
    assert failed.title == "sql(no orphans)"
    (waiting,) = waivable_checks([failed], tables, "p")
    assert waiver_names([waiting]) == ["sql(no orphans)"]
    named = failed.model_copy(update={"name": ""})
    assert verdicts_digest([failed]) == verdicts_digest([named]), "approvals of runs that wait hold"
    assert verdicts_digest([failed]) != verdicts_digest([failed.model_copy(update={"verdict": "pass"})])


def test_a_waiver_is_of_one_pipeline() -> None:
    assert check_fingerprint(parsed().tables["t.x"].checks[0], "q") != UNIQUE.fingerprint


def test_a_name_with_spaces_around_it_is_not_that_of_a_check() -> None:
    """It would count, and the merge would not find it."""
    padded = WAIVER.model_copy(update={"check": f" {WAIVER.check}"})
    refused = waiver_refusal(yes(padded), AwaitedDecision(to_waive=[UNIQUE]), NOW)
    assert refused and "is not one of them" in refused


# End of a waiver


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-12-01", "2026-12-01T23:59:59+00:00"),
        (" 2026-12-01 ", "2026-12-01T23:59:59+00:00"),
        ("2026-12-01T10:00+02:00", "2026-12-01T08:00:00+00:00"),
        ("2026-12-01T10:00:00Z", "2026-12-01T10:00:00+00:00"),
    ],
)
def test_a_date_holds_until_its_end(text: str, time: str) -> None:
    assert parse_until(text).isoformat() == time


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a waiver needs an end"),
        ("tomorrow", "is not a valid end of a waiver"),
        ("2026-12-01T10:00", "is not a valid end of a waiver"),
        ("2026-02-30", "is not a valid end of a waiver"),
        ("0001-01-01T00:00:00+01:00", "is not a valid end of a waiver"),
        ("٢٠٢٦-12-01", "is not a valid end of a waiver"),
        ("2026-12-01\x1b10:00+00:00", "is not a valid end of a waiver"),
        (f"2026-12-01T10:00:00.{'1' * 9000}Z", "is not a valid end of a waiver"),
        ("2026-11-21", "has to end in the future"),
        ("2026-11-22T12:00:00Z", "has to end in the future"),
        ("2027-02-21", "until 2027-02-20 at the latest"),
        ("2036-11-22", f"may last {MAX_DAYS} days"),
        ("2026-11-22", None),
        ("2027-02-20", None),
    ],
)
def test_an_end_is_in_the_future_and_within_a_quarter(text: str, why: str | None) -> None:
    problem = until_problem(text, NOW)
    assert problem is None if why is None else why in (problem or "")


# Names


def test_checks_are_named_so_that_no_two_have_one_name() -> None:
    other_table = UNIQUE.model_copy(update={"table": "t.y"})
    second = UNIQUE.model_copy(update={"index": 7, "fingerprint": "ab" * 32})
    assert waiver_names([UNIQUE, NOT_NULL]) == ["unique(id)", "not_null(id)"]
    assert waiver_names([UNIQUE, other_table]) == ["t.x: unique(id)", "t.y: unique(id)"]
    assert waiver_names([UNIQUE, second]) == [f"t.x: unique(id)@{UNIQUE.fingerprint[:8]}", "t.x: unique(id)@abababab"]
    assert waiver_names([UNIQUE, UNIQUE.model_copy(update={"index": 4})]) == ["unique(id)"], "one definition, twice"
    for checks in ([UNIQUE, NOT_NULL], [UNIQUE, other_table], [UNIQUE, second]):
        assert choose_checks(waiver_names(checks), checks) == checks
    assert choose_checks(["t.x:  unique(id)"], [UNIQUE]) == [UNIQUE]
    with pytest.raises(InvalidPipeline, match=r"several failed checks.*: t\.x: unique\(id\), t\.y: unique\(id\)$"):
        choose_checks(["unique(id)"], [UNIQUE, other_table])
    with pytest.raises(InvalidPipeline, match=r"not a failed check .* Checks to waive: unique\(id\)$"):
        choose_checks(["row_count"], [UNIQUE])
    with pytest.raises(InvalidPipeline, match="Checks to waive: none"):
        choose_checks(["row_count"], [])


def test_the_command_quotes_what_a_shell_would_change() -> None:
    hostile = UNIQUE.model_copy(update={"check": "unique(a'; rm -rf ~)"})
    assert waive_command("w", [hostile]) == (
        """python run_workflow.py approve w --waive 'unique(a'"'"'; rm -rf ~)' --reason ... --until DATE"""
    )


# Decisions


@pytest.mark.parametrize(
    ("decision", "to_waive", "why"),
    [
        (yes(), [], None),
        (yes(WAIVER), [], "no failed check waits for a waiver"),
        (yes(), [UNIQUE], "the audit failed, and an approval has to waive unique(id) of t.x"),
        (yes(WAIVER), [UNIQUE], None),
        (yes(WAIVER), [UNIQUE, UNIQUE.model_copy(update={"index": 9})], None),
        (yes(WAIVER), [UNIQUE, NOT_NULL], "has to waive not_null(id) of t.x"),
        (yes(WAIVER, OTHER), [UNIQUE, NOT_NULL], None),
        (yes(WAIVER, WAIVER), [UNIQUE], "the decision waives unique(id) twice"),
        (yes(WAIVER, OTHER), [UNIQUE], "the checks to waive are unique(id): 'not_null(id) of t.x' is not one of them"),
        (yes(WAIVER.model_copy(update={"table": "t.y"})), [UNIQUE], "is not one of them"),
        (yes(WAIVER.model_copy(update={"fingerprint": "0" * 64})), [UNIQUE], "is not one of them"),
        (yes(Waiver(check="unique(id)", reason="r", until="2026-12-01")), [UNIQUE], None),
        (
            yes(Waiver(check="unique(id)", reason="r", until="2026-12-01")),
            [UNIQUE, UNIQUE.model_copy(update={"table": "t.y"})],
            "'unique(id)' is the name of several of them",
        ),
        (yes(Waiver()), [UNIQUE], "is not one of them"),
        (yes(WAIVER.model_copy(update={"until": "2026-11-01"})), [UNIQUE], "has to end in the future"),
        (yes(WAIVER.model_copy(update={"until": "2036-11-01"})), [UNIQUE], "at the latest"),
        (yes(WAIVER.model_copy(update={"until": ""})), [UNIQUE], "a waiver needs an end"),
        (yes(WAIVER.model_copy(update={"reason": " "})), [UNIQUE], "a waiver needs a reason"),
        (yes(WAIVER.model_copy(update={"reason": "a\x1b[2J"})), [UNIQUE], "without control or invisible characters"),
        (yes(WAIVER.model_copy(update={"reason": "a\nb"})), [UNIQUE], "must be one line"),
        (yes(WAIVER.model_copy(update={"reason": "a\u202eb"})), [UNIQUE], "invisible characters"),
        (yes(WAIVER.model_copy(update={"reason": "a" * (REASON_LIMIT + 1)})), [UNIQUE], "the limit is 500"),
        (yes(WAIVER, approve=False), [UNIQUE], "a rejection waives nothing"),
        (yes(approve=False), [UNIQUE], None),
    ],
)
def test_an_approval_waives_exactly_what_waits_for_it(
    decision: Decision, to_waive: list[WaivableCheck], why: str | None
) -> None:
    refused = waiver_refusal(decision, AwaitedDecision(to_waive=to_waive), NOW)
    assert refused is None if why is None else why in (refused or "")


def test_a_signed_waiver_names_its_check_in_full() -> None:
    awaited = AwaitedDecision(to_waive=[UNIQUE], signed=True)
    assert waiver_refusal(yes(WAIVER), awaited, NOW) is None
    for missing in ("table", "fingerprint"):
        why = waiver_refusal(yes(WAIVER.model_copy(update={missing: ""})), awaited, NOW)
        assert why and "names the table and the fingerprint" in why


def test_what_is_signed_covers_the_waivers_and_stays_as_it_was_without() -> None:
    plain = signed_text(yes(), "r")
    assert b"waivers" not in plain
    signed = json.loads(signed_text(yes(WAIVER), "r"))
    assert signed.pop("waivers") == [WAIVER.model_dump()] and signed == json.loads(plain)


def test_a_secret_in_a_reason_is_refused() -> None:
    assert secret_problem([WAIVER]) == ""
    leaking = WAIVER.model_copy(update={"reason": "see https://ana:hunter22@example.com/ticket"})
    assert "looks like a secret" in secret_problem([WAIVER, leaking])


def test_a_recorded_waiver_names_its_check_in_full() -> None:
    bare = Waiver(check="unique(id)", reason="late feed", until=UNTIL)
    assert completed_waivers(yes(bare), [NOT_NULL, UNIQUE]) == [WAIVER]


def granted(*decisions: Decision, checks: Sequence[WaivableCheck] = (UNIQUE,)) -> list[WaivedCheck]:
    return granted_waivers(decisions, checks, "r1", "w1")


def test_all_who_approve_have_to_waive_and_the_earliest_end_holds() -> None:
    ben = yes(WAIVER.model_copy(update={"until": "2026-11-30", "reason": "agreed"}), by="ben")
    assert granted(yes(WAIVER)) == [WAIVED]
    (both,) = granted(yes(WAIVER), ben)
    assert (both.by, both.until) == (["ana", "ben"], "2026-11-30T23:59:59+00:00")
    assert both.reason == "ana: late feed; ben: agreed"
    assert granted() == granted(yes(WAIVER), yes(by="ben")) == granted(yes(WAIVER, approve=False)) == []
    assert granted(yes(WAIVER), checks=[NOT_NULL, UNIQUE.model_copy(update={"fingerprint": "0"})]) == []
    assert granted(yes(WAIVER.model_copy(update={"until": "never"}))) == []


def test_nothing_is_merged_under_a_waiver_that_ended_long_ago() -> None:
    end = parse_until(UNTIL)
    assert ended_waivers([WAIVED], end + GRACE) == [] and ended_waivers([WAIVED], end + GRACE * 2) == [WAIVED]
    assert unwaived_error([WAIVED], [WAIVED], [], NOW) == unwaived_error([WAIVED], [], [WAIVED], NOW) == ""
    assert "ended before the merge" in unwaived_error([WAIVED], [WAIVED], [], end + timedelta(days=1))
    for changed in ({"until": "2026-12-02T00:00:00+00:00"}, {"by": ["ben"]}, {"fingerprint": "0"}, {"run_id": "r2"}):
        claimed = WAIVED.model_copy(update=changed)
        assert "no approver has waived unique(id) of t.x" in unwaived_error([claimed], [WAIVED], [], NOW)
