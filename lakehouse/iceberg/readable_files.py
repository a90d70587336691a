"""Decide whether DuckDB reads the rows of data files by itself."""

from collections.abc import Sequence

from pyiceberg.manifest import DataFile

from lakehouse.iceberg.table_state import TableState
from sluice.audit.engine_choice import DUCKDB_KINDS, field_id_problem, file_problem
from sluice.metadata.statistics import SchemaField
from sluice.sql.values import kind_of


def duckdb_reads(state: TableState, fields: Sequence[SchemaField], files: Sequence[DataFile]) -> bool:
    """Return True if DuckDB reads exactly the rows of these data files, apart from delete files."""
    return (
        all(kind_of(field.type) in DUCKDB_KINDS for field in fields)
        and field_id_problem(state.table.properties, has_defaults=state.has_column_defaults) is None
        and not any(
            file_problem(file.file_path, file.file_format.value) or state.may_lack_columns(file) for file in files
        )
    )
