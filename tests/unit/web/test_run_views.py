"""Parts of the pages of runs: changes by table, the last day, the timeline, and the decision that a run waits for."""

from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from runtime.run.listed_run import ListedRun
from sluice.approval.decisions import ApprovalRecord, Decision
from sluice.approval.waivers import WaivableCheck
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import RunResult, RunStatus, Stage, StageEvent
from sluice.contracts.table_changes import RowCounts, TableChange
from web.approval.waiting import AwaitedView, awaited_decision
from web.run.changes import table_numbers
from web.run.last_day import last_day
from web.run.timeline import timeline
from web.templates import cell, elapsed, left, numeric_columns

NOW = datetime(2026, 11, 22, 7, 45, 30, tzinfo=timezone.utc)


def result(**fields: Any) -> RunResult:
    return RunResult(run_id="r", workflow_id="p-0123456789ab", pipeline="p", **fields)


def test_the_numbers_of_tables() -> None:
    tables = {
        "t.x__quarantine": TableChange(operation="append", added_rows=2, total_rows=2, created=True),
        "t.new": TableChange(operation="append", added_rows=5, total_rows=5, created=True, hint="Partition by day"),
        "t.keys": TableChange(
            operation="overwrite", added_rows=9, deleted_rows=7, total_rows=100,
            rows=RowCounts(inserted=3, updated=2, removed=1, replaced=4, known_by="keys of the input"),
        ),
        "t.unknown": TableChange(operation="overwrite", added_rows=9, deleted_rows=7),
        "t.compacted": TableChange(operation="replace", added_rows=9, deleted_rows=9, total_rows=9),
        "t.gone": TableChange(operation="drop", deleted_rows=1_200),
    }  # fmt: skip
    shown = {each.table: each for each in table_numbers(result(tables=tables))}
    assert list(shown) == ["t.new", "t.keys", "t.unknown", "t.compacted", "t.gone", "t.x__quarantine"]
    numbers = {name: (each.added, each.removed, each.changed, each.after) for name, each in shown.items()}
    assert numbers["t.new"] == (5, 0, 0, 5)
    assert numbers["t.keys"] == (3, 5, 2, 100), "replaced rows are removed, too"
    assert numbers["t.unknown"] == (None, None, None, None)
    assert numbers["t.compacted"] == (0, 0, 0, 9)
    assert [shown[name].shown_after for name in ("t.keys", "t.unknown", "t.gone")] == ["100", "?", "dropped"]
    assert shown["t.x__quarantine"].is_quarantine and shown["t.new"].created and shown["t.new"].hint
    assert table_numbers(result()) == []


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (elapsed(9.9), "9 s"),
        (elapsed(timedelta(hours=3, minutes=18, seconds=5)), "3 h 18 min"),
        (elapsed(timedelta(days=2, hours=1)), "2 d 1 h"),
        (elapsed(61), "1 min 1 s"),
        (elapsed(-5), "0 s"),
        (left("2000-01-01"), "0 s"),
        (left("2000-01-01T00:00:00Z"), "0 s"),
        (left("soon"), ""),
        (cell(None), "null"),
        (cell("a" * 121), "a" * 119 + "…"),
        (cell("token: s3cr3t-0123"), "token: [hidden]"),
    ],
)
def test_texts_of_values(shown: str, text: str) -> None:
    assert shown == text


def test_columns_of_numbers() -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "price": "12.50", "share": 1.5, "code": "0123", "paid": True, "note": None, "mixed": 1},
        {"id": None, "price": "-0.001", "share": 2, "code": "42", "paid": False, "note": None, "mixed": "one"},
    ]
    assert numeric_columns(rows) == {"id", "price", "share"}, "a code of digits is text, and true is no number"
    assert numeric_columns([]) == frozenset()


def run(outcome: str | None, minutes: float = 0, state: str = "completed", number: int = 0) -> ListedRun:
    """Return a run that ended some minutes before now."""
    closed = NOW - timedelta(minutes=minutes)
    return ListedRun(f"p-{number:012x}", "r", "p", state, outcome, closed, closed, [], "")


def test_the_last_day_has_a_mark_for_each_run_of_its_24_hours() -> None:
    day = last_day([run("published", 1), run("failed", 24 * 60 - 1), run("quarantined", 70)], NOW)
    assert sorted(each.outcome for each in day.marks) == ["failed", "published", "quarantined"]
    by_outcome = {each.outcome: each for each in day.marks}
    assert by_outcome["failed"].x < by_outcome["quarantined"].x < by_outcome["published"].x < 100
    assert by_outcome["published"].title == "p: published, 2026-11-22 07:44 UTC"
    assert by_outcome["published"].link == "/runs/p-000000000000/r"
    assert day.counts == {"published": 1, "failed": 1, "quarantined": 1}
    assert [text for _, text in day.labels] == ["07:00", "13:00", "19:00", "01:00"]


def test_marks_of_one_hour_stand_above_each_other_inside_the_strip() -> None:
    day = last_day([run("published", 1), run("published", 2), run("failed", 3)], NOW)
    assert len({each.x for each in day.marks}) == 1
    heights = [each.y for each in day.marks]
    assert len(set(heights)) == 3 and min(heights) > 0 and max(heights) < day.height


def test_a_full_hour_leaves_out_what_was_published_and_tells_how_much() -> None:
    published = [run("published", number / 100) for number in range(100)]
    trouble = [
        run(outcome, number) for number, outcome in enumerate(("failed", "quarantined", "cancelled", "discarded"))
    ]
    day = last_day([*published, *trouble, run(None, 4, "terminated")], NOW)
    assert len(day.marks) == 12
    assert Counter(each.outcome for each in day.marks) == {
        "failed": 1, "quarantined": 1, "cancelled": 1, "discarded": 1, "terminated": 1, "published": 7,
    }  # fmt: skip
    (standing,) = [each for each in day.marks if each.more]
    assert standing.more == 93 and standing.title.endswith("; 93 more runs ended in this hour")
    assert sum(each.more for each in day.marks) + len(day.marks) == sum(day.counts.values()) == 105
    assert min(each.y for each in day.marks) > 10, "the number of further runs stands above the marks"


def test_a_day_without_runs() -> None:
    day = last_day([], NOW)
    assert (day.marks, day.counts) == ([], {}) and day.height > 0


def event(stage: Stage, seconds: float, note: str = "") -> StageEvent:
    return StageEvent(stage=stage, at=(NOW + timedelta(seconds=seconds)).isoformat(), note=note)


def test_the_timeline_of_a_run() -> None:
    events = [event("starting", 0), event("writing", 10, "try 1"), event("auditing", 50), event("ended", 100)]
    entries = timeline(events, NOW + timedelta(seconds=100))
    assert [(each.stage, each.at, each.seconds) for each in entries] == [
        ("starting", "07:45:30", 10), ("writing", "07:45:40", 40), ("auditing", "07:46:20", 50),
    ]  # fmt: skip
    assert [(each.start, each.width) for each in entries] == [(0, 10), (10, 40), (50, 50)]
    assert entries[1].note == "try 1"


def test_the_timeline_of_a_run_that_goes_on_or_began_just_now() -> None:
    assert timeline([], NOW) == []
    (entry,) = timeline([event("starting", 0)], NOW - timedelta(seconds=5))  # the clocks of two machines differ
    assert (entry.seconds, entry.start) == (0, 0) and entry.width > 0
    first, second = timeline([event("starting", 0), event("writing", 30)], NOW + timedelta(seconds=60))
    assert (first.seconds, second.seconds, second.start, second.width) == (30, 30, 50, 50)


FAILED = CheckResult(table="t.x", index=0, check="unique", columns=["id"], verdict="fail")
TO_WAIVE = WaivableCheck(table="t.x", index=0, check="unique(id)", fingerprint="ab" * 32)


def awaited(person: str, stage: Stage = "waiting for approval", **record: Any) -> AwaitedView | None:
    approval = ApprovalRecord(**{"required": 2, **record})
    shown = result(branch="b", audited_hash="ab" * 32, checks=[FAILED], approval=approval)
    return awaited_decision(RunStatus(stage=stage, events=[], result=shown, deadline="2026-11-23T07:45"), person)


def refused(person: str, **record: Any) -> str:
    view = awaited(person, **record)
    assert view
    return view.refused


def test_the_decision_that_a_run_waits_for() -> None:
    view = awaited("ben", why="the worker demands it", decisions=[Decision(approve=True, by="ana")])
    assert view
    assert view.report.startswith("abababababab:") and len(view.report) == 25
    assert (view.audited_hash, view.why, view.refused) == ("ab" * 32, "the worker demands it", "")
    assert view.needed == "1 approval is missing. 1 of 2 is given."
    assert awaited("ben", "publishing") is None


def test_who_may_not_decide() -> None:
    assert refused("ANA", excluded="ana@laptop") == (
        "ana@laptop started the run, and four eyes are required: another person has to decide."
    )
    assert refused("ben", excluded="ana@laptop") == ""
    decided = [Decision(approve=True, by="Ana@desk")]
    assert refused("ana", decisions=decided).startswith("You approved it already.")
    assert refused("ben", decisions=decided) == ""


def test_the_names_of_checks_to_waive() -> None:
    other = TO_WAIVE.model_copy(update={"fingerprint": "cd" * 32})
    of_other_table = TO_WAIVE.model_copy(update={"table": "t.y", "fingerprint": "ef" * 32})
    view = awaited("ana", to_waive=[TO_WAIVE, TO_WAIVE.model_copy(update={"index": 5}), other, of_other_table])
    assert view
    assert [name for name, _ in view.to_waive] == [
        "t.x: unique(id)@abababab", "t.x: unique(id)@cdcdcdcd", "t.y: unique(id)",
    ]  # fmt: skip
    assert [check.fingerprint[:2] for _, check in view.to_waive] == ["ab", "cd", "ef"]
