"""Rules for a rebase: the run only added files, and these fit the table as it is on main now."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from sluice.contracts.existing_rows import RebaseBranchInput
from sluice.errors import TableReplaced
from sluice.pipeline.write import Write

_NEWEST_FORMAT = 2
"""Newest format version that can be rebased. PyIceberg does not write version 3 yet, which numbers rows."""
_IRRELEVANT = ("created-at", "owner", "write.parquet.compression-codec")
"""Prefixes of table properties that do not affect how the table is read or written."""


@dataclass(frozen=True)
class TableLayout:
    """Layout of a table, as far as a data file must fit it."""

    format_version: int = 2
    columns: Sequence[str] = ()
    partitionings: Collection[str] = ()
    """Partitionings of the written files, or of the table that they are added to."""
    sort_order: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


class RebaseCandidate(Protocol):
    """One table that a run changed, and its present version on main.

    The catalog alone answers the first four members. The others may read metadata and manifests, so they are used last.
    """

    @property
    def name(self) -> str:
        """Name of the table."""

    @property
    def dropped(self) -> bool:
        """True if the run dropped the table."""

    @property
    def changed_on_main(self) -> bool:
        """True if main has another version of the table than when the run began."""

    @property
    def dropped_on_main(self) -> bool:
        """True if main no longer has the table."""

    @property
    def replaced_on_main(self) -> bool:
        """True if the table was dropped on main since the run began, and another one of its name was created."""

    @property
    def operations(self) -> Collection[str]:
        """Iceberg's names for the operations of the run's snapshots."""

    @property
    def deletes_rows(self) -> bool:
        """True if the run wrote row-level deletes."""

    @property
    def removed_files(self) -> int:
        """Number of data files from before the run that it removed."""

    @property
    def layout(self) -> TableLayout:
        """Layout of the table on the branch, with the partitionings of the files that the run added."""

    @property
    def layout_on_main(self) -> TableLayout:
        """Layout of the table on main now."""

    @property
    def properties_before(self) -> Mapping[str, str]:
        """Properties of the table before the run; those on main for a table that the run created."""


def moved_tables_problem(input: RebaseBranchInput, compacted: Collection[str] = ()) -> str:
    """Return the reason to rewrite a run because main changed tables that its checks read, or an empty string.

    The files of the run can be committed as they are, and its checks answered again. But a write that may have read one
    of these tables might produce other rows from the newer version, so the run repeats it.

    Args:
        compacted: tables that main only compacted. A write produces the same rows from them.
    """
    moved = sorted({*input.conflicts} - {*input.write_result.tables, *unchanged_tables(input.write, compacted)})
    if not moved or not input.write.may_depend_on_other_tables:
        return ""
    return f"what was written may depend on {', '.join(moved)}, which main changed"


def check_not_replaced(candidates: Sequence[RebaseCandidate], branch: str) -> None:
    """Check that the tables to which a run wrote are still those on main. The uuid identifies a table.

    Args:
        branch: the branch of the run, or the quarantine that it releases.

    Raises:
        TableReplaced: main has another table of the same name.
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
    """Return the reason why the changes of a run cannot be rebased onto the present main, or an empty string.

    If the catalog alone shows that one table cannot be rebased, no manifest of any table is read.

    Args:
        appends: True if the files may be added to a newer table, because their content does not depend on the older
            one.
        rows_quarantined: True if bad rows were quarantined on the branch, which removes files of the run itself.
        catalog_properties: prefixes of table properties that the catalog itself writes.
        unchanged: tables whose files main changed, but not their rows.
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
    """Return the tables that main only compacted and whose rows a write need not read again.

    Return none if the pipeline demands a rewrite after every conflict.
    """
    return () if write.on_conflict == "rewrite" else compacted


def describe_compacted(tables: Collection[str]) -> str:
    """Describe the tables that main only compacted, for a person; empty if there are none."""
    return f"main compacted {', '.join(sorted(tables))}" if tables else ""


def _version_problems(table: RebaseCandidate, appends: bool) -> Iterator[str]:
    if not appends:
        yield f"what was written to {table.name} may depend on the earlier rows of main"
    if table.dropped_on_main:
        yield f"main dropped {table.name} meanwhile"


def _content_problems(table: RebaseCandidate, rows_quarantined: bool, irrelevant: tuple[str, ...]) -> Iterator[str]:
    """Yield the rules that a table breaks, one by one, so that no more of the table is read than needed."""
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
