"""What can be rebased: files that were only added, and that fit the table as main has it now."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class RebaseCandidate:
    """One table that a run changed, beside what main holds of it now."""

    name: str
    dropped: bool = False
    """Whether the run dropped it."""
    changed_on_main: bool = True
    """Whether main holds another version than when the run began."""
    dropped_on_main: bool = False
    operations: Collection[str] = ("append",)
    """Iceberg's names of the operations of the run's snapshots."""
    deletes_rows: bool = False
    """Whether the run wrote row-level deletes."""
    removed_files: int = 0
    """How many data files of before the run it removed."""
    layout: TableLayout = TableLayout()
    layout_on_main: TableLayout = TableLayout()
    properties_before: Mapping[str, str] = field(default_factory=dict)
    """The table's properties before the run; those on main for a table that the run created."""


def rebase_problem(
    candidates: Iterable[RebaseCandidate],
    *,
    appends: bool,
    rows_quarantined: bool,
    catalog_properties: tuple[str, ...] = (),
) -> str:
    """Return why what a run did cannot be rebased onto main as it is now; empty if it can.

    Args:
        appends: whether the files may be added to a newer table: what they hold does not depend on the older one.
        rows_quarantined: whether bad rows were quarantined on the branch, which removes files of the run itself.
        catalog_properties: beginnings of table properties that the catalog writes for itself.
    """
    problems = (_problem(each, appends, rows_quarantined, catalog_properties) for each in candidates)
    return next((problem for problem in problems if problem), "")


def _problem(table: RebaseCandidate, appends: bool, rows_quarantined: bool, catalog_properties: tuple[str, ...]) -> str:
    """Return the first rule that a table breaks. Where main did not change it, dropping it is the only one."""
    name = table.name
    rules = [
        (table.dropped, f"{name} was dropped"),
        (not appends, f"what was written to {name} may depend on what main held before"),
        (table.dropped_on_main, f"main dropped {name} meanwhile"),
        (table.deletes_rows, f"the run deleted rows of {name}"),
        (bool({*table.operations} - {"append"}) and not rows_quarantined, f"the run did more to {name} than append"),
        (table.removed_files > 0, f"the run replaced files of {name}"),
        *_layout_rules(table, (*_IRRELEVANT, *catalog_properties)),
    ]
    if not table.changed_on_main:
        rules = rules[:1]
    return next((problem for is_broken, problem in rules if is_broken), "")


def _layout_rules(table: RebaseCandidate, irrelevant: tuple[str, ...]) -> list[tuple[bool, str]]:
    name, layout, main = table.name, table.layout, table.layout_on_main
    newest = max(layout.format_version, main.format_version)
    changed = _relevant(layout.properties, irrelevant) != _relevant(table.properties_before, irrelevant)
    return [
        (newest > _NEWEST_FORMAT, f"{name} has format version {newest}"),
        (list(layout.columns) != list(main.columns), f"the schema of {name} differs from main's"),
        (not {*layout.partitionings} <= {*main.partitionings}, f"the partitioning of {name} differs from main's"),
        (list(layout.sort_order) != list(main.sort_order), f"the sort order of {name} differs from main's"),
        (changed, f"the run changed properties of {name}"),
    ]


def _relevant(properties: Mapping[str, str], irrelevant: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if not key.startswith(irrelevant)}
