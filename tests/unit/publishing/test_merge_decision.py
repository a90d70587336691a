"""The decision before a merge: conflicts first, then the input, added files, and the tables that checks read."""

import pytest

from sluice.contracts.input import PublicationCheck
from sluice.contracts.selected_input import ManifestRef
from sluice.errors import AlreadyPublished, UnexpectedWrite
from sluice.publishing.merge_decision import MainBeforeMerge, decide_merge

FILES = PublicationCheck(tables=["t.x"], manifest=ManifestRef(location="m.json", digest="d"))
WHOLE = FILES.model_copy(update={"digest": "d"})


def test_a_run_is_merged_if_main_changed_nothing_that_it_uses() -> None:
    assert decide_merge(MainBeforeMerge(), FILES) == []


def test_a_conflict_of_a_written_table_is_decided_first() -> None:
    main = MainBeforeMerge(conflicts=["t.x"], overlap="main contains it", changed_watched_tables=["t.y"])
    assert decide_merge(main, WHOLE) == ["t.x"]


def test_a_change_of_a_table_that_checks_read_is_a_conflict() -> None:
    assert decide_merge(MainBeforeMerge(changed_watched_tables=["t.y"]), WHOLE) == ["t.y"]


def test_files_that_main_contains_by_now_are_a_conflict_since_a_rewrite_leaves_them_out() -> None:
    assert decide_merge(MainBeforeMerge(overlap="main contains a.csv"), FILES) == ["t.x"]


@pytest.mark.parametrize("published", [WHOLE, None])
def test_a_whole_input_that_main_contains_by_now_is_refused(published: PublicationCheck | None) -> None:
    with pytest.raises(AlreadyPublished, match=r"main contains its input\. To publish it again, add --again"):
        decide_merge(MainBeforeMerge(overlap="main contains its input"), published)


def test_an_added_file_that_a_table_lists_already_is_refused() -> None:
    with pytest.raises(UnexpectedWrite, match=r"t\.x would list a\.parquet and 1 other file more than once"):
        decide_merge(MainBeforeMerge(repeated_files={"t.x": ["a.parquet", "b.parquet"]}), WHOLE)
