"""What can be rebased: files that were only added, and that fit the table as main has it now."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from sluice.contracts.existing_rows import RebaseBranchInput
from sluice.errors import TableReplaced
from sluice.pipeline.write import Write

_NEWEST_FORMAT = 2
"""Version 3 numbers rows in the metadata; PyIceberg does not write that yet."""
_IRRELEVANT = ("created-at", "owner", "write.parquet.compression-codec")
"""Beginnings of table properties that do not matter to how the table is read or written."""


@dataclass(frozen=True)
class TableLayout:
    """How a table is laid out, as far as a data file must fit it."""

    format_version: int = 2
    columns: Sequence[str] = ()
    partitionings: Collection[str] = ()
    """Of the written files, or of the table that they are added to."""
    sort_order: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


class RebaseCandidate(Protocol):
    """One table that a run changed, beside what main holds of it now.

    The catalog knows the first four members. The others may read metadata and manifests, so they are asked for last.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dropped(self) -> bool:
        """Whether the run dropped it."""

    @property
    def changed_on_main(self) -> bool:
        """Whether main holds another version than when the run began."""

    @property
    def dropped_on_main(self) -> bool:
        """Whether main does not have it any more."""

    @property
    def replaced_on_main(self) -> bool:
        """Whether main has another table of this name than the one that the run began with."""

    @property
    def operations(self) -> Collection[str]:
        """Iceberg's names of the operations of the run's snapshots."""

    @property
    def deletes_rows(self) -> bool:
        """Whether the run wrote row-level deletes."""

    @property
    def removed_files(self) -> int:
        """How many data files of before the run it removed."""

    @property
    def layout(self) -> TableLayout:
        """The table's layout on the branch, with the partitionings of the files that the run added."""

    @property
    def layout_on_main(self) -> TableLayout:
        """The table's layout on main now."""

    @property
    def properties_before(self) -> Mapping[str, str]:
        """The table's properties before the run; those on main for a table that the run created."""


def moved_tables_problem(input: RebaseBranchInput, compacted: Collection[str] = ()) -> str:
    """Return why a run has to be rewritten because main changed tables that its checks read; empty if it has not.

    Its files can be committed as they are, and its checks asked again. But a write that may have read one of these
    tables might bring other rows from the newer one, so it is done again.

    Args:
        compacted: the tables that main only compacted: a write brings the same rows from them.
    """
    moved = sorted({*input.conflicts} - {*input.write_result.tables, *unchanged_tables(input.write, compacted)})
    if not moved or not input.write.may_depend_on_other_tables:
        return ""
    return f"what was written may depend on {', '.join(moved)}, which main changed"


def check_not_replaced(candidates: Sequence[RebaseCandidate], branch: str) -> None:
    """Make sure that what a run wrote goes into the tables that it wrote to. A table is its uuid.

    Args:
        branch: the branch of the run, or the quarantine that it releases.

    Raises:
        TableReplaced: main has another table of such a name.
    """
    if replaced := [table.name for table in candidates if table.replaced_on_main]:
        raise TableReplaced(
            f"{', '.join(replaced)} on main is another table than the one that {branch} was written for: another "
            "program dropped it and created it again meanwhile. Nothing was published. To load into the new table, "
            "run the pipeline again"
        )


def rebase_problem(
    candidates: Sequence[RebaseCandidate],
    *,
    appends: bool,
    rows_quarantined: bool,
    catalog_properties: tuple[str, ...] = (),
    unchanged: Collection[str] = (),
) -> str:
    """Return why what a run did cannot be rebased onto main as it is now; empty if it can.

    No manifest of any table is read where the catalog alone tells that one of them cannot be rebased.

    Args:
        appends: whether the files may be added to a newer table: what they hold does not depend on the older one.
        rows_quarantined: whether bad rows were quarantined on the branch, which removes files of the run itself.
        catalog_properties: beginnings of table properties that the catalog writes for itself.
        unchanged: tables whose rows main did not change, although it changed their files.
    """
    irrelevant = (*_IRRELEVANT, *catalog_properties)
    changed = [table for table in candidates if table.changed_on_main]
    problems = (
        *(f"{table.name} was dropped" for table in candidates if table.dropped),
        *(problem for table in changed for problem in _version_problems(table, appends or table.name in unchanged)),
    )
    by_contents = (problem for table in changed for problem in _content_problems(table, rows_quarantined, irrelevant))
    return next(chain(problems, by_contents), "")


def unchanged_tables(write: Write, compacted: Collection[str]) -> Collection[str]:
    """Return the tables whose rows a write need not read again, of those that main only compacted.

    None where the pipeline demands that every conflict is rewritten.
    """
    return () if write.on_conflict == "rewrite" else compacted


def describe_compacted(tables: Collection[str]) -> str:
    """Return, for a person, that main changed no row of tables; empty for none."""
    return f"main compacted {', '.join(sorted(tables))}" if tables else ""


def _version_problems(table: RebaseCandidate, appends: bool) -> Iterator[str]:
    if not appends:
        yield f"what was written to {table.name} may depend on what main held before"
    if table.dropped_on_main:
        yield f"main dropped {table.name} meanwhile"


def _content_problems(table: RebaseCandidate, rows_quarantined: bool, irrelevant: tuple[str, ...]) -> Iterator[str]:
    """Yield the rules that a table breaks, one by one: each reads no more of the table than it needs."""
    name = table.name
    if table.deletes_rows:
        yield f"the run deleted rows of {name}"
    if {*table.operations} - {"append"} and not rows_quarantined:
        yield f"the run did more to {name} than append"
    if table.removed_files:
        yield f"the run replaced files of {name}"
    layout, main = table.layout, table.layout_on_main
    if (newest := max(layout.format_version, main.format_version)) > _NEWEST_FORMAT:
        yield f"{name} has format version {newest}"
    if list(layout.columns) != list(main.columns):
        yield f"the schema of {name} differs from main's"
    if not {*layout.partitionings} <= {*main.partitionings}:
        yield f"the partitioning of {name} differs from main's"
    if list(layout.sort_order) != list(main.sort_order):
        yield f"the sort order of {name} differs from main's"
    if _relevant(table.layout.properties, irrelevant) != _relevant(table.properties_before, irrelevant):
        yield f"the run changed properties of {name}"


def _relevant(properties: Mapping[str, str], irrelevant: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if not key.startswith(irrelevant)}
