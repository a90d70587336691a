"""File selection: find the data files that a check must read, by the bounds that metadata records."""

from collections.abc import Iterable, Sequence
from typing import Any

from sluice.audit.tables import AuditedTable, ReferencedTable
from sluice.checks.base import Check, CheckQuery
from sluice.checks.rows import RowCheck
from sluice.metadata.statistics import FileStatistics, Scope, TableStatistics
from sluice.sql.values import FLOATS, kind_of


def undecided_files(checks: Sequence[Check], statistics: TableStatistics, scope: Scope) -> list[FileStatistics]:
    """Return the files of a scope that metadata leaves undecided for any of these checks, in the table's order."""
    paths: set[str] = set()
    for check in checks:
        files = check.undecided_in(statistics) if isinstance(check, RowCheck) else statistics.files(scope)
        paths.update(file.path for file in files)
    return [file for file in statistics.files(scope) if file.path in paths and file.rows]


def other_live_files(table: AuditedTable, query: CheckQuery, files: Sequence[FileStatistics]) -> list[FileStatistics]:
    """Return the live files that this run did not add and that may contain a key of `files`."""
    added = {file.path for file in table.statistics.added}
    others = [file for file in table.statistics.live if file.path not in added and file.rows]
    key = query.key
    if key is None or kind_of(table.statistics.types[key]) in FLOATS:
        return others  # a NaN key equals another NaN, and bounds do not include NaN
    if query.nulls_match and any(file.column(key).nulls != 0 for file in files):
        return others
    return files_with_keys(others, key, files, key)


def all_other_live_files(
    table: AuditedTable, queries: Iterable[CheckQuery], files: Sequence[FileStatistics]
) -> list[FileStatistics]:
    """Return the other live files that any of these queries must read, each once."""
    grouped = [query for query in queries if query.groups_with_other_rows]
    return list({file.path: file for query in grouped for file in other_live_files(table, query, files)}.values())


def referenced_files(
    table: AuditedTable, referenced: ReferencedTable, queries: Iterable[CheckQuery], files: Sequence[FileStatistics]
) -> list[FileStatistics]:
    """Return the files of a referenced table that may contain a key of `files`."""
    readers = [each for each in queries if each.reference and each.reference.key == referenced.reference.key]
    if len(readers) != 1 or not readers[0].key or kind_of(table.statistics.types[readers[0].key]) in FLOATS:
        return [file for file in referenced.files if file.rows]
    reference = readers[0].reference
    assert reference
    return files_with_keys(referenced.files, reference.columns[0], files, readers[0].key)


def files_with_keys(
    files: Sequence[FileStatistics], column: str, key_files: Sequence[FileStatistics], key: str
) -> list[FileStatistics]:
    """Return the files whose `column` may contain a value of the column `key` in `key_files`, by their bounds.

    A null never equals a key, so a file that contains only nulls is left out too.
    """
    bounds = [(f.column(key).lower, f.column(key).upper) for f in key_files if f.rows and f.values(key) != 0]
    if not bounds:
        return []
    unknown = any(None in pair for pair in bounds)
    low, high = (None, None) if unknown else (min(b[0] for b in bounds), max(b[1] for b in bounds))
    return [file for file in files if file.rows and not _outside(file, column, low, high)]


def _outside(file: FileStatistics, column: str, low: Any, high: Any) -> bool:
    """Return True if all values of a column are below `low` or above `high`, as far as its bounds prove."""
    recorded = file.column(column)
    try:
        return low is not None and bool(
            (recorded.upper is not None and recorded.upper < low)
            or (recorded.lower is not None and recorded.lower > high)
        )
    except TypeError:  # bounds of two types cannot be compared, so they prove nothing
        return False


def disjoint_groups(files: Sequence[FileStatistics], column: str, kind: str) -> list[list[FileStatistics]]:
    """Group files so that no non-null value of the column can occur in two groups."""
    bounds = {file.path: (file.column(column).lower, file.column(column).upper) for file in files}
    if kind_of(kind) in FLOATS or any(None in pair for pair in bounds.values()):
        return [list(files)]
    groups: list[list[FileStatistics]] = []
    highest: Any = None
    for file in sorted(files, key=lambda file: bounds[file.path][0]):
        low, high = bounds[file.path]
        if groups and low <= highest:
            groups[-1].append(file)
            highest = max(highest, high)
        else:
            groups.append([file])
            highest = high
    return groups
