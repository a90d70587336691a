"""Freshness of a table: late by a schedule, by a landing zone, or by the usual time between publications."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from sluice.contracts.schedules import MissedStarts
from sluice.durations import format_roughly
from sluice.publishing.freshness import ExpectedFiles, ScheduledStarts, judge_freshness

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
ZONE = ExpectedFiles("orders", 24 * 3600.0)


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def starts(**fields: Any) -> ScheduledStarts:
    """Return a daily schedule whose last run, seven hours ago, was published. The next one begins in 17 hours."""
    given = {"pipeline": "orders", "last": ago(7), "state": "published", "next": ago(-17), "missed": MissedStarts()}
    return ScheduledStarts(**{**given, **fields})


def judged(*published: float, schedule: ScheduledStarts | None = None, zone: ExpectedFiles | None = None) -> str:
    """Return the sentence about a table that was published these numbers of hours ago. It begins with `late` if so."""
    times = [ago(each) for each in published]
    answer = judge_freshness(times, [schedule] if schedule else [], [zone] if zone else [], NOW)
    assert answer.published == times[0]
    assert answer.is_late == answer.reason.startswith("late")
    return answer.reason


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        (starts(), "orders starts next at 2026-11-23 05:00 UTC"),
        (starts(state="nothing new"), "orders starts next at 2026-11-23 05:00 UTC"),
        (starts(state="running"), "the run of orders scheduled for 2026-11-22 05:00 UTC is under way"),
        (
            starts(state="quarantined"),
            "late by 7 h: the run of orders scheduled for 2026-11-22 05:00 UTC ended quarantined",
        ),
        (
            starts(state="running", missed=MissedStarts(overlapping=2)),
            "late by 7 h: the run of orders scheduled for 2026-11-22 05:00 UTC has not ended, and 2 later starts "
            "were skipped",
        ),
        (starts(next=ago(3)), "late by 3 h: orders should have started at 2026-11-22 09:00 UTC"),
        (starts(next=ago(0.05)), "orders starts next at 2026-11-22 11:57 UTC"),
        (
            starts(missed=MissedStarts(late=1)),
            "late: orders missed 1 scheduled start since 2026-11-22 05:00 UTC",
        ),
        (
            starts(missed=MissedStarts(late=1), last=None, state=""),
            "late: orders missed 1 scheduled start since it was deployed",
        ),
    ],
)  # fmt: skip
def test_late_by_a_schedule(schedule: ScheduledStarts, sentence: str) -> None:
    assert judged(30, schedule=schedule) == sentence


def test_a_publication_after_a_failed_start_is_on_time() -> None:
    """A person repaired the quarantine, or started the pipeline by hand."""
    assert judged(1, schedule=starts(state="quarantined")) == "orders starts next at 2026-11-23 05:00 UTC"


def test_late_by_a_landing_zone() -> None:
    assert judged(23, zone=ZONE) == "the landing zone of orders expects a file every 24 h, last 23 h ago"
    sentence = "late by 26 h: the landing zone of orders expects a file every 24 h, last 50 h ago"
    assert judged(50, zone=ZONE) == sentence
    assert judged(50, zone=ZONE, schedule=starts()) == sentence, "one of several that is late is enough"


def test_late_by_the_usual_time() -> None:
    assert judged(50, *range(74, 300, 24)) == "late by 26 h: usually every 24 h, last 50 h ago"
    assert judged(47, *range(71, 300, 24)) == "usually every 24 h, last 47 h ago"
    assert judged(24 * 11, *range(24 * 12, 24 * 30, 24)) == "usually every 24 h, last 11 d ago: no longer expected"


def test_what_is_stated_matters_more_than_what_is_usual() -> None:
    """A pipeline that starts on weekdays is not late on Sunday."""
    assert judged(50, *range(74, 300, 24), schedule=starts(last=ago(50))).startswith("orders starts next")
    unknown = starts(state="forgotten by Temporal", next=None)
    assert judged(50, *range(74, 300, 24), schedule=unknown).startswith("late by 26 h: usually")


def test_a_longer_time_that_occurred_before_is_not_late() -> None:
    assert judged(60, 84, 108, 180, 204, 228, 252) == "usually every 24 h, last 60 h ago"


@pytest.mark.parametrize(
    "published", [(50.0,), (50, 74, 98, 122, 146), [50 + number / 60 for number in range(40)]], ids=str
)
def test_few_publications_and_a_burst_of_them_show_nothing_usual(published: list[float]) -> None:
    assert judged(*published) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(40, "40 s"), (119, "119 s"), (1500, "25 min"), (2 * 3600, "2 h"), (86340, "24 h"), (4 * 86400, "4 d")],
)
def test_a_rounded_duration(seconds: float, text: str) -> None:
    assert format_roughly(seconds) == format_roughly(timedelta(seconds=seconds)) == text
