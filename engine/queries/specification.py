"""The messages between the worker and the process of a query: specification and answer."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from engine.duckdb_session import ParquetView
from sluice.base_model import WireMessage
from sluice.contracts.lake_queries import QueryRows


class QuerySpecification(WireMessage):
    """One query: its SQL, the tables that it reads, and its limits."""

    kind: Literal["parse", "read"]
    """`parse` returns the names of the tables in the SQL, `read` returns the rows of the query."""
    sql: str
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
    rows: Mapping[str, str] = Field(default_factory=dict)
    """Tables in Arrow files: the path of the file by the table's name. The name may have no namespace."""


class QueryAnswer(WireMessage):
    """The answer that the process of a query writes before it ends, in one of these fields."""

    tables: list[str] = Field(default_factory=list)
    rows: QueryRows | None = None
    refused: str = ""
    """Reason why the SQL was refused or failed."""
    out_of_memory: bool = False
