"""When another attempt is made, when a run stops to rebase, and which runs wait in the merge queue."""

import pytest

from sluice.contracts.run import Conflict, Stage
from sluice.publishing.retries import (
    MAX_NEVER_STARTED,
    AttemptLimit,
    WaitBeforeRebase,
    conflict_limit_reached,
    count_rebases,
    wait_before_rebase,
)


def conflicts(rebased: int = 0, rewritten: int = 0) -> list[Conflict]:
    return [
        *(Conflict(tables=["t.x"], resolved="rebased") for _ in range(rebased)),
        *(Conflict(tables=["t.x"], resolved="rewritten") for _ in range(rewritten)),
    ]


def failed(limit: AttemptLimit, stage: Stage = "writing", *, never_started: bool = False, again: bool = True) -> bool:
    return limit.allows_another(stage, was_never_started=never_started, is_retryable=again)


def test_a_failed_attempt_is_followed_by_another_up_to_the_limit() -> None:
    limit = AttemptLimit(3)
    assert [failed(limit) for _ in range(3)] == [True, True, False]


def test_attempts_that_never_started_have_a_limit_of_their_own() -> None:
    limit = AttemptLimit(2)
    assert all(failed(limit, never_started=True) for _ in range(MAX_NEVER_STARTED))
    assert failed(limit)
    assert not failed(limit, never_started=True)


@pytest.mark.parametrize(
    ("stage", "again", "allowed"),
    [
        ("writing", True, True),
        ("verifying", True, True),
        ("quarantining rows", True, True),
        ("writing", False, False),
        ("auditing", True, False),
        ("publishing", True, False),
    ],
)
def test_another_attempt_is_made_only_for_a_write_that_may_succeed(stage: Stage, again: bool, allowed: bool) -> None:
    assert failed(AttemptLimit(3), stage, again=again) == allowed


@pytest.mark.parametrize(
    ("rebased", "rewritten", "reached"), [(0, 0, False), (3, 1, False), (4, 0, True), (0, 2, True), (3, 2, True)]
)
def test_rebases_and_rewrites_have_a_limit_each(rebased: int, rewritten: int, reached: bool) -> None:
    earlier = conflicts(rebased, rewritten)
    assert count_rebases(earlier) == rebased
    assert conflict_limit_reached(earlier, max_rebases=4, max_rewrites=2) == reached


@pytest.mark.parametrize(
    ("rebased", "needs_approval", "merge_queue", "wait"),
    [
        (0, False, True, "none"),
        (0, True, False, "none"),
        (1, False, True, "merge slot"),
        (1, True, True, "random delay"),
        (1, False, False, "random delay"),
    ],
)
def test_who_enters_the_merge_queue(
    rebased: int, needs_approval: bool, merge_queue: bool, wait: WaitBeforeRebase
) -> None:
    earlier = conflicts(rebased, rewritten=1)
    assert wait_before_rebase(earlier, needs_approval=needs_approval, merge_queue=merge_queue) == wait
