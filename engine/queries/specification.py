"""The messages between the worker and the process of a query or of a diff: specification and answer."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from engine.duckdb_session import ParquetView
from sluice.base_model import WireMessage
from sluice.contracts.lake_queries import QueryRows
from sluice.contracts.table_diffs import RowDifferences
from sluice.diff.columns import DiffColumn
from sluice.metadata.statistics import DeleteFile


class DiffedVersion(WireMessage):
    """The rows of one version of a table that a diff compares."""

    files: ParquetView
    """Data files that only this version has."""
    marked: ParquetView
    """Data files of both versions whose deletes differ. Of these, only rows that one version lacks are compared."""
    deletes: Mapping[str, Sequence[DeleteFile]] = Field(default_factory=dict)
    """The delete files of this version that apply to each of the `marked` data files, by its path."""
    partitions: Mapping[str, str] = Field(default_factory=dict)
    """The partition of each data file; empty for a table without partitions."""
    in_memory: bool = False
    """True if the rows are in a table in memory instead, named like `files`."""


class DiffSpecification(WireMessage):
    """Two versions of a table, and how to compare their rows."""

    before: DiffedVersion
    after: DiffedVersion
    columns: Sequence[DiffColumn]
    key: Sequence[int] = ()
    """Field ids of the key; none if no key is known."""
    rows: int
    """Maximum number of sample rows of each kind."""
    sample_bytes: int
    """Maximum size of all sample rows, in bytes."""
    only_sample: bool = False
    """True if one of the versions has no rows here, so that metadata counts the rows of the other."""


class QuerySpecification(WireMessage):
    """One query: its SQL, the tables that it reads, and its limits."""

    kind: Literal["parse", "write_rows", "read", "diff"]
    """`parse` returns the names of the tables in the SQL, `read` the rows of the query, `diff` compares two tables.

    `write_rows` writes the rows of tables that DuckDB cannot read to Arrow files, for a later `read` or `diff`.
    """
    sql: str = ""
    diff: DiffSpecification | None = None
    folder: str
    """The query's own folder, to which the process writes the answer."""
    memory: str
    """Memory that DuckDB may use before it spills to disk, as `2GB`."""
    memory_limit: int
    """Maximum memory, in bytes, that the process may reserve in addition to that which it has when it starts."""
    seconds: int
    """Maximum run time of the process, in seconds."""
    threads: int
    io: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Iceberg's properties for reading files in a store."""
    files: Sequence[ParquetView] = ()
    """Tables of data files, each under its name with its namespace."""
    rows: Mapping[str, Sequence[str]] = Field(default_factory=dict)
    """Tables in Arrow files: the paths of the files by the table's name. The name may have no namespace."""
    reader: str = ""
    """Module whose `write_rows` writes the rows of tables to Arrow files."""
    request: str = Field("", repr=False)
    """The tables whose rows it writes, in its own form. It may contain credentials of the object store."""


class QueryAnswer(WireMessage):
    """The answer that the process of a query writes before it ends, in one of these fields."""

    tables: list[str] = Field(default_factory=list)
    written: dict[str, list[str]] | None = None
    """Paths of the Arrow files that were written, by the table's name."""
    rows: QueryRows | None = None
    differences: RowDifferences | None = None
    refused: str = ""
    """Reason why the SQL was refused or failed."""
    out_of_memory: bool = False
