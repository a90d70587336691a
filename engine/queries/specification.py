"""What the worker gives to the process of a query, and what it gets back."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from engine.duckdb_session import ParquetView
from sluice.base_model import Model
from sluice.contracts.lake_queries import QueryRows


class QuerySpecification(Model):
    """One query: its SQL, the tables that it reads, and its limits."""

    kind: Literal["parse", "read"]
    """Parse it and return the names of its tables, or read its rows."""
    sql: str
    folder: str
    """The folder of this query alone, where its answer is written."""
    memory: str
    """How much memory DuckDB may use before it spills to disk, as `2GB`."""
    memory_limit: int
    """How many bytes of memory the process may reserve, beside those that it has when it starts."""
    seconds: int
    """How long the process may run."""
    threads: int
    io: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """The properties by which Iceberg reads files in a store."""
    files: Sequence[ParquetView] = ()
    """Tables of data files, each under its name with its namespace."""
    rows: Mapping[str, str] = Field(default_factory=dict)
    """Tables in an Arrow file each: its path by the table's name, which may have no namespace."""


class QueryAnswer(Model):
    """What the process of a query writes before it ends: one of these."""

    tables: list[str] = Field(default_factory=list)
    rows: QueryRows | None = None
    refused: str = ""
    """Why the SQL is not run, or fails."""
    out_of_memory: bool = False
