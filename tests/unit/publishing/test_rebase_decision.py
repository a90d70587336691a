"""The decision about a rebase: what can be moved to a newer main."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from sluice.publishing.rebase import TableLayout, rebase_problem

LAYOUT = TableLayout(columns=["1: a"], partitionings=["day"], sort_order=["a"], properties={"p": "1"})


@dataclass(frozen=True)
class Candidate:
    """A `RebaseCandidate` that only appends to a table that main changed too."""

    name: str
    dropped: bool = False
    changed_on_main: bool = True
    dropped_on_main: bool = False
    replaced_on_main: bool = False
    operations: Sequence[str] = ("append",)
    deletes_rows: bool = False
    removed_files: int = 0
    layout: TableLayout = LAYOUT
    layout_on_main: TableLayout = LAYOUT
    properties_before: Mapping[str, str] = field(default_factory=lambda: {"p": "1"})


FITS = Candidate("t.x")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"changed_on_main": False, "operations": ["overwrite"], "deletes_rows": True}, ""),
        ({"changed_on_main": False, "dropped": True}, "t.x was dropped"),
        ({"dropped_on_main": True}, "main dropped t.x meanwhile"),
        ({"deletes_rows": True}, "the run deleted rows of t.x"),
        ({"operations": ["append", "overwrite"]}, "the run did more to t.x than append"),
        ({"removed_files": 1}, "the run replaced files of t.x"),
        ({"layout": replace(LAYOUT, columns=["1: a", "2: b"])}, "the schema of t.x differs from main's"),
        ({"layout": replace(LAYOUT, partitionings=["hour", "day"])}, "the partitioning of t.x differs from main's"),
        ({"layout": replace(LAYOUT, partitionings=[])}, ""),
        ({"layout": replace(LAYOUT, sort_order=[])}, "the sort order of t.x differs from main's"),
        ({"layout_on_main": replace(LAYOUT, format_version=3)}, "t.x has format version 3"),
        ({"layout": replace(LAYOUT, properties={"p": "2"})}, "the run changed properties of t.x"),
        ({"layout": replace(LAYOUT, properties={"p": "1", "created-at": "x", "own.id": "7"})}, ""),
        ({"layout": replace(LAYOUT, properties={"p": "1", "q": "2"})}, "the run changed properties of t.x"),
    ],
)
def test_what_can_be_rebased(changed: dict[str, object], problem: str) -> None:
    candidate = replace(FITS, **changed)  # type: ignore[arg-type]  # the fields are a test's to vary
    actual = rebase_problem([FITS, candidate], appends=True, rows_quarantined=False, catalog_properties=("own.",))
    assert actual == problem


def test_what_depends_on_the_older_main_is_not_rebased() -> None:
    assert "may depend" in rebase_problem([FITS], appends=False, rows_quarantined=False)
    assert not rebase_problem([replace(FITS, changed_on_main=False)], appends=False, rows_quarantined=False)


def test_quarantined_rows_may_be_removed_by_the_run() -> None:
    candidate = replace(FITS, operations=["append", "overwrite"])
    assert not rebase_problem([candidate], appends=True, rows_quarantined=True)
