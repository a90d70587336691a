"""Read tables of main or of a branch for a person's query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.readable_files import duckdb_reads
from lakehouse.iceberg.statistics import schema_fields
from lakehouse.iceberg.table_state import TableState
from lakehouse.lake.row_files import TableRows
from lakehouse.quarantine.quarantined_branches import find_quarantined_branch
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.identifiers import ATTEMPTS, attempt_of, run_of, suggestion
from sluice.metadata.statistics import SchemaField
from sluice.sizes import format_size

MAX_BYTES = 64 * 2**20
_NAMED = 5
"""Maximum number of existing tables named when a query names a missing one."""


@dataclass(frozen=True)
class QueriedTable:
    """One table at one hash: its data files, or its rows to read if the files alone do not determine them."""

    name: str
    fields: Sequence[SchemaField]
    paths: Sequence[str] = ()
    rows: TableRows | None = None


def resolve_ref(catalog: BranchCatalog, ref: str) -> tuple[str, str]:
    """Return the branch, and its hash, that a person's reference means: main, a branch, or the branch of a run.

    Args:
        ref: the name of a branch, a run id, or a run as `quarantine list` names it; empty means main.

    Raises:
        InvalidPipeline: there is no such branch.
    """
    branch = ref or catalog.main
    # Not by `find_head`: catalogs refuse to search for a run id, which is not a valid name of a branch.
    for each in catalog.list_branches(branch):
        if each.name == branch:
            return each.name, each.head
    attempts = [each for each in catalog.list_branches(ATTEMPTS) if run_of(each.name) == ref]
    if attempts:
        latest = max(attempts, key=lambda each: attempt_of(each.name) or 0)
        return latest.name, latest.head
    try:
        quarantined = find_quarantined_branch(catalog, ref)
    except InvalidPipeline:
        raise InvalidPipeline(
            f"there is no branch {ref!r}, and no run of that name has one: `quarantine list` lists all quarantines"
        ) from None
    return quarantined.branch, quarantined.quarantined_hash or quarantined.head


def find_queried_tables(
    catalog: BranchCatalog,
    io: Mapping[str, str],
    branch: str,
    head: str,
    names: Sequence[str],
    max_bytes: int = MAX_BYTES,
) -> list[QueriedTable]:
    """Return tables of a branch at a hash.

    Args:
        max_bytes: maximum size, in bytes, of the data files whose rows PyIceberg reads since DuckDB cannot.

    Raises:
        InvalidInput: there is no such table, or the data files to read are too large.
    """
    tables: list[QueriedTable] = []
    left = max_bytes
    for name in names:
        version = catalog.table_version(branch, name, head)
        if version is None:
            raise InvalidInput(f"there is no table {name} on {branch}{_tables_meant(name, catalog, branch, head)}")
        state = TableState.load(version, None, io)
        fields = schema_fields(state.table.schema())
        files = [entry.data_file for entry in state.entries(added_only=False)]
        if not state.row_deletes and duckdb_reads(state, fields, files):
            tables.append(QueriedTable(name, fields, [file.file_path for file in files]))
            continue
        size = sum(file.file_size_in_bytes for file in files)
        if size > left:
            raise InvalidInput(
                f"{name} has {format_size(size)} of data files, but `query` reads only {format_size(max_bytes)} of "
                "tables with row-level deletes, nested columns or files in a store other than S3: "
                "docs/reading.md has ways without that limit"
            )
        left -= size
        rows = TableRows(name=name, metadata_location=version.metadata_location, snapshot_id=version.snapshot_id)
        tables.append(QueriedTable(name, fields, rows=rows))
    return tables


def _tables_meant(name: str, catalog: BranchCatalog, branch: str, head: str) -> str:
    """Return the suggested table for an unknown name, or else a list of existing tables."""
    tables = catalog.list_tables(branch, head)
    if close := suggestion(name, tables):
        return close
    named = ", ".join([*tables[:_NAMED], *(["…"] if len(tables) > _NAMED else [])])
    return f'; there are {named}: `query "SHOW TABLES"` lists all' if tables else "; the branch has no tables"
