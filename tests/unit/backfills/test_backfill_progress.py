"""A backfill as pure logic: the window, the stop rule, retries, and a state that stays small."""

from typing import Any

import pytest

from sluice.backfills.ending import backfill_exit_code, not_published, option_to_repeat, partitions_exit_code
from sluice.backfills.progress import BackfillProgress, count_states, partition_states
from sluice.causes import Cause
from sluice.contracts.backfill import BackfillState, BackfillStatus, JointPublish
from sluice.contracts.run import Outcome
from sluice.contracts.starting import EndedRun
from sluice.errors import InvalidPipeline

PUBLISHED = EndedRun(outcome="published", rows_added=3)
KEPT = EndedRun(outcome="quarantined", cause="audit", reason="a check failed", workflow_id="w", run_id="r")
REFUSED = EndedRun(outcome="refused", reason="no files")
_PAYLOAD_LIMIT = 2 * 1024 * 1024
"""Maximum size of a Temporal payload, in bytes."""


def progress(count: int = 6, **more: Any) -> BackfillProgress:
    return BackfillProgress(BackfillState(partitions=[f"p{number}" for number in range(count)], **more))


def start(one: BackfillProgress) -> list[str]:
    """Start partitions until the window is full."""
    names = []
    while (name := one.next_partition()) is not None:
        one.started(name)
        names.append(name)
    return names


def end(one: BackfillProgress, name: str, ended: EndedRun = PUBLISHED) -> None:
    one.ended(ended.model_copy(update={"key": name}))


def test_the_window_is_filled_in_order_and_never_exceeded() -> None:
    one = progress(window=2)
    assert start(one) == ["p0", "p1"]
    end(one, "p1")
    end(one, "p1")  # a repeated report
    assert start(one) == ["p2"] and one.running == ["p0", "p2"]
    one.set_window(4)
    assert start(one) == ["p3", "p4"]
    one.set_window(1)
    end(one, "p0")
    assert start(one) == [] and one.state.rows_added == 6
    for name in one.running:
        end(one, name)
    assert start(one) == ["p5"] and not one.has_ended
    end(one, "p5")
    assert one.has_ended and partitions_exit_code(one.state) == 0


@pytest.mark.parametrize(
    ("outcome", "cause", "state", "code"),
    [
        ("published", None, "published", 0),
        ("skipped", "already_published", "skipped", 0),
        ("failed", "already_published", "skipped", 0),  # the form of earlier versions
        ("skipped", "nothing_to_do", "skipped", 0),
        ("discarded", "nothing_to_do", "skipped", 0),
        ("quarantined", "audit", "kept out", 3),
        ("discarded", "audit", "kept out", 3),
        ("quarantined", "rejected", "kept out", 4),
        ("failed", "unreachable", "failed", 7),
        ("failed", "error", "failed", 6),
        ("failed", "invalid", "failed", 6),
        ("cancelled", "cancelled", "cancelled", 5),
    ],
)
def test_how_a_run_ends_is_the_state_of_its_partition(
    outcome: Outcome, cause: Cause | None, state: str, code: int
) -> None:
    one = progress(1)
    start(one)
    end(one, "p0", EndedRun(outcome=outcome, cause=cause))
    assert partition_states(one.state) == {"p0": state} and one.has_ended
    assert partitions_exit_code(one.state) == code


def test_the_worst_end_gives_the_exit_code() -> None:
    one = progress(3, stop_after=0)
    start(one)
    end(one, "p0", KEPT)
    assert partitions_exit_code(one.state) == 3
    end(one, "p1", REFUSED)
    assert partitions_exit_code(one.state) == 2
    end(one, "p2", EndedRun(outcome="failed", cause="error"))
    assert partitions_exit_code(one.state) == 6


def test_a_published_partition_that_main_still_has_stays_published() -> None:
    one = progress(4, window=4)
    start(one)
    for name in ("p0", "p1", "p2"):
        end(one, name, EndedRun(outcome="published"))
    one.add(["p0", "p1", "p2"], recheck=True)
    assert start(one) == ["p0", "p1", "p2"]
    end(one, "p0", EndedRun(outcome="discarded", cause="already_published"))
    end(one, "p1", EndedRun(outcome="failed", cause="error"))
    one.add(["p1", "p0"], recheck=True)
    one.cancel()
    states = partition_states(one.state)
    assert (states["p0"], states["p1"]) == ("published", "cancelled"), "p1 may have been rolled back"
    assert one.state.rechecked == []


def test_the_stop_rule_pauses_and_says_why_until_it_is_resumed() -> None:
    one = progress(window=2, stop_after=2)
    start(one)
    end(one, "p0", KEPT)
    end(one, "p1", REFUSED)
    assert start(one) == [] and "2 of its partitions failed or were kept out" in one.paused and not one.has_ended
    one.resume()
    assert start(one) == ["p2", "p3"] and not one.paused
    end(one, "p2", KEPT)
    assert start(one) == ["p4"], "failures are counted from the resume"
    never = progress(4, stop_after=0)
    for name in start(never):
        end(never, name, KEPT)
    assert never.has_ended and not never.paused
    last = progress(1, stop_after=1)
    start(last)
    end(last, "p0", KEPT)
    assert last.has_ended and not last.paused, "nothing is left to pause for"


def test_a_pause_lets_those_that_run_go_on() -> None:
    one = progress(window=2)
    start(one)
    one.pause("by ada: lunch")
    end(one, "p0")
    assert start(one) == [] and one.running == ["p1"]
    one.resume()
    assert start(one) == ["p2"]


def test_where_order_matters_no_partition_overtakes_one_that_is_open() -> None:
    one = progress(4, window=1, stop_after=0, in_order=True)
    assert start(one) == ["p0"] and one.window_problem(2) and not one.window_problem(1)
    end(one, "p0")
    assert start(one) == ["p1"] and not one.resume_problem
    end(one, "p1", KEPT)
    assert "p1 is kept out, and no later partition may run before it" in one.paused and not one.has_ended
    assert "p1 is kept out" in one.resume_problem
    one.resume()
    assert start(one) == [], "whatever resumes it, p1 is first"
    one.add(["p9"])
    assert "p1 is kept out" in one.paused and start(one) == [], "what is added waits, too"
    one.retry()
    assert start(one) == ["p1"] and not one.paused
    end(one, "p1", EndedRun(outcome="cancelled", cause="cancelled"))
    assert "p1 is cancelled" in one.paused
    one.retry()
    assert start(one) == ["p1"]
    end(one, "p1")
    for name in ("p2", "p3", "p9"):
        assert start(one) == [name]
        end(one, name)
    assert one.is_complete
    assert not progress(4).window_problem(9) and not progress(4).resume_problem


def test_an_older_partition_is_not_added_behind_younger_ones() -> None:
    one = BackfillProgress(BackfillState(partitions=["2018-02", "2018-03"], window=1, in_order=True))
    with pytest.raises(InvalidPipeline, match="2018-01 is older than 2018-03 of the backfill under way"):
        one.add(["2018-01"])
    one.add(["2018-04"])
    assert one.state.partitions == ["2018-02", "2018-03", "2018-04"]


def test_a_retry_begins_those_again_that_are_not_on_main() -> None:
    one = progress(5, window=5, stop_after=0)
    start(one)
    for name, ended in zip(one.running, [PUBLISHED, KEPT, REFUSED, EndedRun(outcome="cancelled")], strict=False):
        end(one, name, ended)
    assert set(one.state.notes) == {"p1", "p2", "p3"} and one.state.notes["p1"].run_id == "r"
    one.retry()
    assert start(one) == ["p1", "p2", "p3"] and one.state.notes == {}
    assert partition_states(one.state)["p0"] == "published" and one.running == ["p1", "p2", "p3", "p4"]


def test_partitions_are_added_and_what_is_done_stays_done() -> None:
    one = progress(2, stop_after=1)
    start(one)
    end(one, "p0")
    end(one, "p1", KEPT)
    one.add(["p0", "p1", "p7"])
    assert partition_states(one.state) == {"p0": "published", "p1": "waiting", "p7": "waiting"}
    assert start(one) == ["p1", "p7"]
    with pytest.raises(InvalidPipeline, match="the limit of 10,000"):
        one.add([f"q{number}" for number in range(10_000)])
    assert len(one.state.partitions) == 3


def test_who_adds_partitions_asks_for_those_that_are_begun() -> None:
    """Four eyes exclude this person from approving them."""
    one = progress(3, stop_after=0)
    start(one)
    end(one, "p0")
    end(one, "p1", KEPT)
    one.add(["p0", "p1", "p2", "p7"], "bob")
    assert one.state.askers == {"p1": "bob", "p7": "bob"}
    one.add(["p8"])
    assert one.state.askers == {"p1": "bob", "p7": "bob"}, "the starter of the backfill needs no entry"
    one.forget_askers()
    assert one.state.askers == {}


def test_a_cancel_gives_up_what_waits() -> None:
    one = progress(4, window=1)
    start(one)
    one.cancel()
    assert start(one) == [] and not one.has_ended
    end(one, "p0", EndedRun(outcome="cancelled", cause="cancelled"))
    assert one.has_ended and count_states(one.state)["cancelled"] == 4 and partitions_exit_code(one.state) == 5


@pytest.mark.parametrize(("count", "limit"), [(1_000, 200_000), (10_000, _PAYLOAD_LIMIT // 4)])
def test_the_state_of_a_large_backfill_is_small_and_comes_back_the_same(count: int, limit: int) -> None:
    one = progress(count, window=100, stop_after=0)
    while not one.has_ended:
        for name in start(one):
            ended = EndedRun(outcome="failed", cause="error", reason="x" * 1000, workflow_id="w" * 120, run_id="r" * 36)
            end(one, name, ended)
    payload = one.state.model_dump_json()
    assert len(payload) < limit
    again = BackfillState.model_validate_json(payload)
    assert again == one.state and count_states(again)["failed"] == count
    assert BackfillProgress(again).has_ended and list(again.notes)[-1] == f"p{count - 1}"


@pytest.mark.parametrize(("first", "code"), [("refused", 2), ("unreachable", 7), ("failed", 6)])
def test_the_exit_code_of_very_many_failures_is_that_of_the_worst(first: str, code: int) -> None:
    """The notes of the other failures are dropped, but not the note of this one, the only one of its kind."""
    of_first = {
        "refused": EndedRun(outcome="refused"),
        "unreachable": EndedRun(outcome="failed", cause="unreachable"),
        "failed": EndedRun(outcome="failed", cause="error"),
    }
    one = progress(500, window=100, stop_after=0)
    while not one.has_ended:
        for name in start(one):
            end(one, name, of_first[first] if name == "p0" else EndedRun(outcome="refused"))
    assert len(one.state.notes) == 200 and partitions_exit_code(one.state) == code


def status(letters: str, together: JointPublish | None = None) -> BackfillStatus:
    names = [f"p{number}" for number in range(len(letters))]
    state = BackfillState(partitions=names, letters=letters)
    return BackfillStatus(name="p", starter="ada", pipeline="p.yml", progress=state, together=together)


PUBLISHED_TOGETHER = JointPublish(ended=PUBLISHED)


@pytest.mark.parametrize(
    ("now", "workflow", "code"),
    [
        (status("pp"), "completed", 0),
        (status("pp"), "terminated", 6),
        (status("pr"), "terminated", 6),
        (status("pw"), "completed", 6),
        (status("pk"), "failed", 6),
        (status("pw"), "running", 0),
        (status("pc"), "canceled", 5),
        (status("pp", JointPublish(branch="b")), "canceled", 5),
        (status("pp", JointPublish(branch="b")), "completed", 6),
        (status("pp", PUBLISHED_TOGETHER), "completed", 0),
        (status("pp", JointPublish(ended=KEPT)), "completed", 3),
        (status("cc", JointPublish(ended=REFUSED)), "completed", 2),
    ],
)
def test_a_backfill_that_was_ended_by_force_has_failed(now: BackfillStatus, workflow: str, code: int) -> None:
    assert backfill_exit_code(now, workflow) == code


def test_what_was_collected_is_not_published_before_the_merge_of_all() -> None:
    assert not_published(status("psfkcw")) == ["p2", "p3", "p4", "p5"]
    assert not_published(status("psf", JointPublish(branch="b"))) == ["p0", "p1", "p2"]
    assert not_published(status("ps", JointPublish(ended=KEPT))) == ["p0", "p1"]
    assert not_published(status("ps", PUBLISHED_TOGETHER)) == []


def test_the_lines_of_a_reason_are_told_apart() -> None:
    """An earlier version joined two sentences without a stop, of a file with a header alone."""
    progress = BackfillProgress(BackfillState(partitions=["p"]))
    progress.started("p")
    progress.ended(EndedRun(key="p", outcome="failed", cause="invalid", reason="t.x has no column 'a'\n\n  no types\n"))
    assert progress.state.notes["p"].reason == "t.x has no column 'a'; no types"


@pytest.mark.parametrize(
    ("reason", "option"), [("2018-01 is older: add --over-younger", " --over-younger"), ("not_null failed", "")]
)
def test_the_command_to_repeat_a_backfill_has_the_option_that_it_needs(reason: str, option: str) -> None:
    """Without it, the partition would be refused again."""
    progress = BackfillProgress(BackfillState(partitions=["p"]))
    progress.started("p")
    progress.ended(EndedRun(key="p", outcome="failed", cause="invalid", reason=reason))
    assert (
        option_to_repeat(BackfillStatus(name="x", starter="ana", pipeline="x.yml", progress=progress.state)) == option
    )
