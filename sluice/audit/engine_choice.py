"""Engine choice: assign each check to the first engine that accepts it, or to Spark if all others refuse.

DuckDB reads the data files itself. It refuses a check if it may read other values than Spark: see
`duckdb_refusals`.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sluice.audit.scan_groups import ScanGroup, scan_groups
from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check, CheckQuery
from sluice.metadata.statistics import FileStatistics
from sluice.sql.dialect import DUCKDB
from sluice.sql.values import kind_of

DUCKDB_KINDS = (
    "boolean", "int", "long", "float", "double", "decimal", "date", "timestamp", "timestamptz", "string",
    "binary", "fixed",
)  # fmt: skip
"""Kinds of columns that DuckDB reads from a data file as Spark does."""


ADDED_COLUMNS = ("sluice_file", "file_row_number")
_SAME_VALUES = (("int", "long"), ("float", "double"))
"""Pairs of column kinds that DuckDB compares as Spark does. It compares columns of the same kind as Spark does, too."""
_MAX_DELETED_ROWS = 10_000_000
"""Maximum number of deleted rows. Their positions take 16 bytes each, in addition to DuckDB's own memory."""


class RefusingEngine(Protocol):
    """An engine that names in advance the checks that it must not answer."""

    def refusals(self, table: AuditedTable, checks: Mapping[int, Check]) -> Mapping[int, str]:
        """Return the checks that it must not answer, each with the reason."""


def field_id_problem(properties: Mapping[str, str], *, has_defaults: bool) -> str | None:
    """Return the reason why a table's data files cannot be read by field id alone, as DuckDB does, or None.

    Args:
        properties: properties of the table.
        has_defaults: True if a column has a default for rows of files that were written before it.
    """
    if "schema.name-mapping.default" in properties:
        return "files are mapped by name"
    return "a column has a default" if has_defaults else None


def accepted_checks(
    table: AuditedTable, checks: Mapping[int, Check], engines: Sequence[RefusingEngine]
) -> dict[int, Check]:
    """Return the checks that at least one of these engines may answer."""
    refused = dict(checks)
    for engine in engines:
        refused = {index: refused[index] for index in engine.refusals(table, refused)}
    return {index: check for index, check in checks.items() if index not in refused}


def duckdb_refusals(table: AuditedTable, checks: Mapping[int, Check], max_bytes: int) -> dict[int, str]:
    """Return the checks of a table that DuckDB must not answer, each with the reason."""
    groups, refusals = scan_groups(table, checks, DUCKDB)
    for group in groups:
        for index, query in group.queries.items():
            files = [*group.files, *group.files_beside(index)]
            columns = {name: table.statistics.types[name] for name in query.columns}
            reason = "unchanged rows are left out" if group.carried else table.field_id_problem
            reason = reason or _reference_problem(table, query) or _refusal(files, columns, max_bytes)
            reason = reason or _name_problem(group)
            if reason:
                refusals[index] = reason
    return refusals


def _reference_problem(table: AuditedTable, query: CheckQuery) -> str | None:
    """Return the reason why DuckDB may read or match the referenced table differently than Spark, or None."""
    if query.reference is None:
        return None
    other = table.referenced[query.reference.key]
    if other.field_id_problem:
        return f"{query.reference.table}: {other.field_id_problem}"
    kinds = {kind_of(other.types[name]) for name in query.reference.columns}
    kinds |= {kind_of(table.statistics.types[query.key])} if query.key else set()
    alike = len(kinds) < 2 or any(kinds <= set(each) for each in _SAME_VALUES)
    return None if alike else f"keys of {' and '.join(sorted(kinds))} are compared"


def _refusal(files: Sequence[FileStatistics], columns: Mapping[str, str], max_bytes: int) -> str | None:
    if sum(file.bytes for file in files) > max_bytes:
        return f"the scan would read more than {max_bytes} bytes"
    reasons = {_file_refusal(file) for file in files}
    deleted = sum(each.rows for each in {each for file in files for each in file.delete_files})
    if deleted > _MAX_DELETED_ROWS:
        return f"more than {_MAX_DELETED_ROWS:,} rows are deleted in place"
    reasons |= {f"{name} is {kind}" for name, kind in columns.items() if kind_of(kind) not in DUCKDB_KINDS}
    return next((reason for reason in reasons if reason), None)


def _name_problem(group: ScanGroup) -> str | None:
    """Return a message if a column has the name of one that DuckDB adds for rows deleted in place, or None."""
    views = [view for view in group.views if any(file.delete_files for file in view.files)]
    taken = [each.name for view in views for each in view.fields if each.name.lower() in ADDED_COLUMNS]
    return f"rows are deleted in place, and a column is called {taken[0]}" if taken else None


def _file_refusal(file: FileStatistics) -> str | None:
    if file.may_lack_columns:
        return "a file may lack a column whose value only its partition has"
    return (file.deletes_problem if file.deletes else "") or file_problem(file.path, file.form)


def file_problem(path: str, form: str) -> str | None:
    """Return the reason why DuckDB does not read a data file itself, or None."""
    if form != "PARQUET":
        return f"a file is {form}"
    is_local = path.removeprefix("file://").removeprefix("file:").startswith("/")
    if not is_local and not path.startswith(("s3://", "s3a://", "s3n://")):
        return "the files are neither local nor on S3"
    is_pattern = any(character in path for character in "*?[\0")
    return "the path of a file contains a wildcard" if is_pattern else None
