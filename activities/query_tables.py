"""Query tables of main or of a branch by SQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.errors import as_application_error
from engine.duckdb_session import DuckDBSession, ParquetView
from lakehouse.catalog import BranchCatalog
from lakehouse.queried_tables import read_queried_tables, resolve_ref
from lakehouse.sql_query import asks_for_tables, read_rows, tables_in
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput


@dataclass(frozen=True)
class QueryTablesActivity:
    """The activity `query_tables`.

    Needs the catalog, the properties by which Iceberg reads the lake, how much memory a query may use, and a folder
    for what does not fit into it.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    memory: str
    scratch: Path

    @activity.defn(name="query_tables")
    def query_tables(self, input: QueryTablesInput) -> QueryRows:
        """Return the rows of a query; all tables are read at one hash. `SHOW TABLES` lists them."""
        with as_application_error():
            if asks_for_tables(input.sql):
                branch, head = resolve_ref(self.catalog, input.ref)
                names = self.catalog.list_tables(branch, head)
                return QueryRows(columns=["name"], rows=[[name] for name in names], head=head)
            names = tables_in(input.sql)
            branch, head = resolve_ref(self.catalog, input.ref)
            tables = read_queried_tables(self.catalog, self.io, branch, head, names)
            files = [ParquetView(each.name, each.fields, each.paths) for each in tables if each.rows is None]
            rows = {each.name: each.rows for each in tables if each.rows is not None}
            with (
                DuckDBSession(self.memory, self.scratch, io=self.io) as session,
                session.tables(files, rows) as connection,
            ):
                return read_rows(connection, input.sql)
