"""The plan of a roll-back, from the commits on main: named runs, later runs, and readers."""

from dataclasses import replace

import pytest

from sluice.errors import InvalidPipeline
from sluice.publishing.published_run import find_published_run
from sluice.publishing.rollback import PublishedCommit, plan_rollback, runs_taken_back


def _commit(number: int, *tables: str) -> PublishedCommit:
    return PublishedCommit(f"h{number}", f"h{number - 1}", f"r{number}", f"w{number}", frozenset(tables))


HISTORY = [_commit(4, "c"), _commit(3, "b", "c"), _commit(2, "a", "b"), _commit(1, "a"), _commit(0, "x")]


def test_nothing_built_on_it() -> None:
    plan = plan_rollback(HISTORY, "r4", with_later=False)
    assert (plan.runs, plan.tables) == (["r4"], {"c": "h3"})


def test_later_runs_stand_in_the_way_by_name() -> None:
    with pytest.raises(InvalidPipeline, match=r"w3 \(b, c\), w4 \(c\).*--with-later"):
        plan_rollback(HISTORY, "r2", with_later=False)


def test_later_runs_are_taken_along_with_all_their_tables() -> None:
    plan = plan_rollback(HISTORY, "r2", with_later=True)
    assert plan.runs == ["r4", "r3", "r2"]
    assert plan.tables == {"a": "h1", "b": "h1", "c": "h2"}


def test_unrelated_later_runs_stay() -> None:
    history = [_commit(3, "a", "b"), _commit(2, "b"), _commit(1, "a")]
    assert plan_rollback(history, "r1", with_later=True).tables == {"a": "h0", "b": "h2"}


def test_a_run_that_is_not_there() -> None:
    with pytest.raises(InvalidPipeline, match="no commit of run r9"):
        plan_rollback(HISTORY, "r9", with_later=True)


# Found on main


def test_a_roll_back_is_named_by_its_workflow_id_and_not_by_its_pipeline() -> None:
    commits = [_on_main(2, rolled_back=("r9",)), _on_main(1)]
    assert find_published_run(commits, "w2").run_id == "r2"
    assert find_published_run(commits, "p").run_id == "r1"


def _on_main(number: int, pipeline: str = "p", rolled_back: tuple[str, ...] = ()) -> PublishedCommit:
    return replace(_commit(number, "a"), pipeline=pipeline, rolled_back=rolled_back, hash=f"{number}" * 64)


def test_a_run_is_named_by_run_or_workflow_id_hash_or_pipeline() -> None:
    commits = [_on_main(3, "q"), _on_main(2), _on_main(1)]
    for named, run_id in (("r1", "r1"), ("w1", "r1"), ("1" * 8, "r1"), ("1" * 64, "r1"), ("q", "r3")):
        assert find_published_run(commits, named).run_id == run_id
    for named in ("r9", "", "1" * 7):
        with pytest.raises(InvalidPipeline, match="main contains no published run"):
            find_published_run(commits, named)


def test_a_misspelled_pipeline_or_id_gets_a_suggestion() -> None:
    taken = replace(_on_main(1, "refunds"), workflow_id="refunds-0123456789ab")
    commits = [_on_main(3, "orders", rolled_back=("r1",)), _on_main(2, "orders"), taken]
    for named, message in (
        ("ordrs", r"'ordrs' \(did you mean 'orders'\?\): give"),
        ("refunds-0123456789ac", r"'refunds-0123456789ac' \(did you mean 'refunds-0123456789ab'\?\)"),
        ("refunds-fedcba987654", "'refunds-fedcba987654': give"),
        ("refunds", "'refunds': give"),
    ):
        with pytest.raises(InvalidPipeline, match=f"main contains no published run {message}"):
            find_published_run(commits, named)


def test_a_pipeline_of_which_main_holds_several_runs_is_refused_with_a_list() -> None:
    again = replace(_on_main(3), workflow_id="w2", loaded_for="2018-03")
    commits = [again, _on_main(2), _on_main(1)]
    lines = r"\n  r3  w2, for 2018-03, of .*\n  r2  w2, of .*\n  r1  w1, of "
    with pytest.raises(InvalidPipeline, match=rf"'p' names 3 published runs: .*{lines}"):
        find_published_run(commits, "p")
    with pytest.raises(InvalidPipeline, match="'w2' names 2 published runs"):
        find_published_run(commits, "w2")


def test_a_pipeline_means_its_only_run_that_main_holds() -> None:
    commits = [_on_main(3, rolled_back=("r2",)), _on_main(2), _on_main(1)]
    assert find_published_run(commits, "p").run_id == "r1"
    assert find_published_run(commits, "r3").run_id == "r3", "a roll-back can be rolled back, by its own id"
    with pytest.raises(InvalidPipeline, match=r"w2 was rolled back already, by w3 .*roll that back"):
        find_published_run(commits, "r2")


def test_a_roll_back_that_was_rolled_back_gives_its_runs_back() -> None:
    commits = [_on_main(4, rolled_back=("r3",)), _on_main(3, rolled_back=("r2", "r1")), _on_main(2), _on_main(1)]
    assert runs_taken_back(commits).keys() == {"r3"}
    assert runs_taken_back(commits[1:]).keys() == {"r1", "r2"}
    assert find_published_run(commits[:3], "w2").run_id == "r2"


# Readers


def _reader(number: int, pipeline: str, *referenced: str) -> PublishedCommit:
    return replace(_commit(number, f"of_{pipeline}"), pipeline=pipeline, referenced=frozenset(referenced))


def test_readers_are_named_before_anything_happens() -> None:
    history = [_reader(4, "orders", "a"), _reader(3, "orders", "a", "z"), _reader(2, "other", "z"), _commit(1, "a")]
    with pytest.raises(InvalidPipeline, match=r"orders \(w4 and 1 more\) was checked against a.*--despite"):
        plan_rollback(history, "r1", with_later=False)
    plan = plan_rollback(history, "r1", with_later=False, despite_readers=True)
    assert plan.runs == ["r1"] and len(plan.readers) == 1


def test_who_read_it_before_or_is_taken_back_is_no_reader() -> None:
    back = replace(_commit(5, "of_orders"), rolled_back=("r3",))
    history = [back, replace(_commit(4, "a"), referenced=frozenset({"a"})), _reader(3, "orders", "a"), _commit(2, "a")]
    history.append(_reader(1, "earlier", "a"))
    assert plan_rollback(history, "r2", with_later=True).readers == []
