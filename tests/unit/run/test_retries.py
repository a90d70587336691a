"""The conditions for another attempt, for a stop to rebase, and for a wait in the merge queue."""

from datetime import datetime, timedelta, timezone

import pytest

from sluice.contracts.run import Conflict
from sluice.publishing.retries import (
    MAX_HISTORY_BYTES,
    MAX_SERVER_CRASHES,
    NO_WORKER,
    TIMED_OUT,
    WORKER_LOST,
    WORKER_STOPPED,
    AttemptFailure,
    AttemptLimit,
    NextAttempt,
    OpeningLimit,
    conflict_limit_reached,
    count_rebases,
    describe_attempts,
    has_merge_priority,
    needs_merge_slot,
)


def conflicts(rebased: int = 0, rewritten: int = 0) -> list[Conflict]:
    return [
        *(Conflict(tables=["t.x"], resolved="rebased") for _ in range(rebased)),
        *(Conflict(tables=["t.x"], resolved="rewritten") for _ in range(rewritten)),
    ]


NOW = datetime(2026, 1, 31, tzinfo=timezone.utc)
DAY = 24 * 3600.0
JOB = AttemptFailure("JobFailed", "exit code 1")
WORKER = AttemptFailure(WORKER_LOST, "no heartbeat")
NESSIE = AttemptFailure("ServiceUnavailable", "Nessie does not answer")
CRASH = AttemptFailure("SparkServerCrashed", "it ended")


def after(limit: AttemptLimit, *failures: AttemptFailure, seconds: float = 0) -> list[NextAttempt | None]:
    return [limit.after(failure, NOW + timedelta(seconds=seconds)) for failure in failures]


def test_a_job_may_fail_up_to_the_limit() -> None:
    assert after(AttemptLimit(3, DAY), JOB, JOB, JOB) == [NextAttempt(True), NextAttempt(True), None]


@pytest.mark.parametrize(
    ("kind", "blame"),
    [
        (WORKER_LOST, "worker"),
        (WORKER_STOPPED, "worker"),
        ("DiskFull", "worker"),
        ("ServiceUnavailable", "service"),
        ("CredentialsExpired", "service"),
        ("SparkServerCrashed", "shared server"),
        ("JobFailed", "job"),
        (TIMED_OUT, "job"),
        ("KeyError", "job"),
        (NO_WORKER, "job"),
    ],
)
def test_who_is_to_blame(kind: str, blame: str) -> None:
    assert AttemptFailure(kind, "").blame == blame


def test_what_workers_and_services_do_does_not_count() -> None:
    limit = AttemptLimit(2, DAY)
    decided = after(limit, *([WORKER, NESSIE] * 20))
    assert all(each and not each.is_counted for each in decided)
    assert (limit.failed, limit.lost) == (0, 40)
    assert after(limit, JOB, JOB) == [NextAttempt(True), None]


def test_delays_grow_to_a_minute_and_begin_again_after_a_failure_of_the_job() -> None:
    limit = AttemptLimit(3, DAY)
    delays = [each.delay for each in after(limit, *([NESSIE] * 8)) if each]
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60]
    assert after(limit, JOB, WORKER) == [NextAttempt(True), NextAttempt(False, 1.0)]


def test_a_day_of_losses_is_a_few_hundred_attempts() -> None:
    """Each attempt is some ten events of the run's history, which Temporal limits."""
    limit, at = AttemptLimit(3, DAY), 0.0
    while again := limit.after(NESSIE, NOW + timedelta(seconds=at)):
        at += again.delay
    assert 200 < limit.lost < 500
    assert at > DAY - 600


def test_losses_are_waited_out_for_a_day() -> None:
    limit = AttemptLimit(3, DAY)
    assert after(limit, WORKER) == [NextAttempt(False, 1.0)]
    assert after(limit, NESSIE, seconds=DAY - 2) == [NextAttempt(False, 2.0)]
    assert after(limit, NESSIE, seconds=DAY) == [None]


def test_the_day_begins_anew_after_a_step_that_succeeded() -> None:
    limit = AttemptLimit(3, DAY)
    after(limit, WORKER, WORKER)
    limit.reset_wait()
    assert after(limit, WORKER, seconds=2 * DAY) == [NextAttempt(False, 1.0)]


def test_losses_end_before_the_history_is_full() -> None:
    limit = AttemptLimit(3, DAY)
    assert limit.after(NESSIE, NOW, MAX_HISTORY_BYTES) is not None
    assert limit.after(NESSIE, NOW, MAX_HISTORY_BYTES + 1) is None


def test_failures_of_the_job_end_before_the_history_is_full_too() -> None:
    limit = AttemptLimit(20, DAY)
    assert limit.after(JOB, NOW, MAX_HISTORY_BYTES) is not None
    assert limit.after(JOB, NOW, MAX_HISTORY_BYTES + 1) is None


def test_crashes_of_a_shared_server_are_waited_out_and_then_count() -> None:
    """A run that meets a crash is repeated alone. If that is impossible, a run that crashes every server must end."""
    limit = AttemptLimit(2, DAY)
    decided = after(limit, *([CRASH] * (MAX_SERVER_CRASHES + 2)))
    assert [each.is_counted for each in decided if each] == [False] * MAX_SERVER_CRASHES + [True]
    assert decided[-1] is None


def test_what_would_fail_again_is_not_tried_again() -> None:
    final = AttemptFailure("ServiceUnavailable", "", is_retryable=False)
    assert after(AttemptLimit(3, DAY), final) == [None]
    assert OpeningLimit(60, DAY).after(final, NOW) is None


def opened(limit: OpeningLimit, *steps: tuple[float, AttemptFailure]) -> list[float | None]:
    return [limit.after(failure, NOW + timedelta(seconds=at)) for at, failure in steps]


def test_opening_gives_up_when_the_catalog_is_away_without_a_break() -> None:
    assert opened(OpeningLimit(3, DAY), (0, NESSIE), (0.5, NESSIE), (1.5, NESSIE)) == [0.5, 1.0, None]
    assert opened(OpeningLimit(60, DAY), (0, NESSIE), (59.6, NESSIE)) == [0.5, None]


def test_a_day_of_tries_to_open_fills_no_history() -> None:
    limit, at, delays = OpeningLimit(DAY, DAY), 0.0, []
    while (delay := limit.after(NESSIE, NOW + timedelta(seconds=at))) is not None:
        delays.append(delay)
        at += delay
    assert DAY - 300 < at <= DAY
    assert len(delays) < 400, "each try takes a dozen events, and Temporal ends a run at 51,200"
    assert max(delays[:20]) == 5 and max(delays) == 300


def test_a_lost_worker_does_not_use_up_the_time_for_the_catalog() -> None:
    """Workers and Nessie may be killed alternately. Each loss of a worker lasts a heartbeat time-out."""
    limit = OpeningLimit(60, DAY)
    steps = [(0, NESSIE), (30, WORKER), (61, NESSIE), (90, WORKER), (122, NESSIE)]
    assert None not in opened(limit, *steps)
    assert opened(limit, (182, NESSIE)) == [None]


def test_opening_does_not_repeat_a_bug_for_ever() -> None:
    bug = AttemptFailure("KeyError", "x")
    assert opened(OpeningLimit(60, DAY), *([(0, bug)] * 5))[-1] is None


def test_attempts_are_described() -> None:
    assert describe_attempts(1, 0) == "1"
    assert describe_attempts(4, 3) == "4; 3 lost with their workers or services, not counted"


@pytest.mark.parametrize(
    ("rebased", "rewritten", "reached"), [(0, 0, False), (3, 1, False), (4, 0, True), (0, 2, True), (3, 2, True)]
)
def test_rebases_and_rewrites_have_a_limit_each(rebased: int, rewritten: int, reached: bool) -> None:
    earlier = conflicts(rebased, rewritten)
    assert count_rebases(earlier) == rebased
    assert conflict_limit_reached(earlier, max_rebases=4, max_rewrites=2) == reached


def test_the_merge_queue_is_for_runs_that_lost_before_and_priority_for_those_that_lost_often() -> None:
    assert [needs_merge_slot(rebases) for rebases in range(6)] == [False, True, True, True, True, True]
    assert [has_merge_priority(rebases) for rebases in range(6)] == [False, False, False, False, True, True]
