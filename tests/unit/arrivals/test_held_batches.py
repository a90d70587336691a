"""The batches of a landing zone: the limit of changes during their runs, and the splits."""

import pytest

from sluice.arrivals.held_batches import HeldBatches
from sluice.contracts.arrivals import BatchRef
from sluice.contracts.starting import EndedRun
from sluice.contracts.zone_loads import LoadBatch
from sluice.contracts.zone_requests import BatchCommand, SplitBatch


def ref(id: str, paths: str = "") -> BatchRef:
    return BatchRef(id=id, location=f"lake/{id}.json", files=2, bytes=20, paths=paths)


def run(batches: HeldBatches, id: str, paths: str, *, changes: bool = True, run_id: str = "r") -> str:
    batches.add([ref(id, paths)], 5.0)
    batches.update(id, state="running")
    ended = EndedRun(key=id, outcome="published", run_id=run_id)
    if changes:
        ended = EndedRun(key=id, outcome="failed", cause="input_changed", run_id=run_id)
    return batches.end(ended)


def test_a_batch_that_is_loaded_ends_a_row_of_changes() -> None:
    batches = HeldBatches()
    for _ in range(5):
        assert [run(batches, "a", "same"), run(batches, "a", "same")] == ["changed"] * 2
        assert run(batches, "a", "same", changes=False) == "loaded"
    assert batches.changes == {}


def test_a_file_that_changes_beside_ever_new_ones_is_kept_out_too() -> None:
    batches = HeldBatches()
    ends = [run(batches, str(number), f"paths-{number}") for number in range(11)]
    assert ends == ["changed"] * 9 + ["kept out"] * 2
    (first, _) = batches.all
    assert first.reason.startswith("files changed under 10 runs in a row") and first.is_outdated


def test_what_changes_before_there_is_a_run_is_collected_again_as_often_as_it_does() -> None:
    """A supplier repairs the files of many batches while their landing zone is paused."""
    batches = HeldBatches()
    assert [run(batches, str(number), "same", run_id="") for number in range(30)] == ["changed"] * 30
    assert batches.changes == {}


def test_a_batch_that_main_holds_ends_a_row_of_changes_too() -> None:
    batches = HeldBatches(changes={"same": 2, "any": 9})
    batches.add([ref("a", "same")], 5.0)
    batches.remove(["a"])
    assert batches.changes == {}


def test_people_are_told_once_of_what_no_run_told_them() -> None:
    batches = HeldBatches()
    batches.add([ref("a"), ref("b")], 5.0)
    for id, run_id in (("a", ""), ("b", "r")):
        batches.update(id, state="running")
        batches.end(EndedRun(key=id, outcome="refused", reason="bad", run_id=run_id))
    assert batches.take_unreported() == ["batch a is kept out, and no run loads it: bad"]
    assert not batches.has_unreported and batches.take_unreported() == []


def test_the_count_goes_along_and_stays_small() -> None:
    batches = HeldBatches()
    for number in range(200):
        run(batches, "x", f"paths-{number}")
        run(batches, "y", "other", changes=False)
    assert len(batches.changes) <= 100
    assert run(batches, "a", "same") == "changed"
    assert run(HeldBatches(changes=batches.changes), "a", "same") == "changed"
    again = HeldBatches(changes={"same": 2})
    assert run(again, "a", "same") == "kept out"


def test_halves_name_who_split_their_batch() -> None:
    batches = HeldBatches()
    batches.add([ref("ab")], 5.0)
    batches.keep_out("ab", "bad")
    request = SplitBatch(batch="ab", by="ana", over_younger=True)
    halves = batches.split(request, [ref("a"), ref("b")])
    assert [each.reason for each in halves] == ["part of batch ab, which ana split"] * 2
    assert all(each.over_younger for each in halves)


def test_the_reason_of_a_batch_that_is_set_aside_shows_where_it_is_cut() -> None:
    batches = HeldBatches()
    batches.add([ref("ab"), ref("cd")], 5.0)
    batches.keep_out("ab", "too short")
    batches.keep_out("cd", "word " * 60)
    decided = [batches.decide(BatchCommand(batch=id, action="set aside", by="ana"))[0] for id in ("ab", "cd")]
    assert decided[0].reason == "too short" and decided[0].state == "set aside"
    assert len(decided[1].reason) == 160 and decided[1].reason.endswith("word…")


def test_a_batch_replaces_younger_rows_only_if_a_person_says_so() -> None:
    batches = HeldBatches()
    batches.add([ref("a")], 5.0)
    for over_younger in (True, False):
        batches.keep_out("a", "bad")
        command = BatchCommand(action="retry", batch="a", by="ana", over_younger=over_younger)
        assert batches.decide(command)[0].over_younger is over_younger
        assert (
            batches.load(LoadBatch(ref=ref("b"), by="ana", over_younger=over_younger), 6.0).over_younger is over_younger
        )


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("keeps_named", [False, True])
def test_a_refused_batch_of_named_files_starts_again_unless_its_files_changed(keeps_named: bool, changes: bool) -> None:
    """Commands of an earlier release have its files collected again, as their histories say."""
    batches = HeldBatches()
    batches.load(LoadBatch(ref=ref("a"), by="ana"), 5.0)
    batches.update("a", state="running")
    batches.end(EndedRun(key="a", outcome="refused", reason="bad"))
    batches.update("a", is_outdated=changes)
    retry = BatchCommand(action="retry", batch="a", by="ana", keeps_named=keeps_named)
    is_kept = keeps_named and not changes
    assert batches.decide(retry)[1] is not is_kept
    assert [each.state for each in batches.all] == (["waiting"] if is_kept else [])
