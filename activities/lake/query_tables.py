"""Query tables of main or of a branch by SQL."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio import activity

from engine.duckdb_session import ParquetView
from engine.queries.runner import QueryRunner
from engine.queries.sql import asks_for_tables
from lakehouse.catalog import BranchCatalog
from lakehouse.queried_tables import MAX_BYTES, QueriedTable, read_queried_tables, resolve_ref
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput


@dataclass(frozen=True)
class QueryTablesActivity:
    """The activity `query_tables`.

    Needs the catalog, Iceberg's FileIO properties for the lake, and the query runner. Cancelling the activity ends the
    query.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    queries: QueryRunner
    max_bytes: int = MAX_BYTES
    """Maximum size, in bytes, of data files that are read into memory."""

    @activity.defn(name="query_tables")
    async def query_tables(self, input: QueryTablesInput) -> QueryRows:
        """Return the rows of a query, which reads all tables at one hash. `SHOW TABLES` lists the tables."""
        if asks_for_tables(input.sql):
            return await asyncio.to_thread(self._list_tables, input.ref)
        names = await self.queries.tables_in(input.sql)
        tables = await asyncio.to_thread(self._read_tables, input.ref, names)
        files = [ParquetView(each.name, each.fields, each.paths) for each in tables if each.rows is None]
        rows = {each.name: each.rows for each in tables if each.rows is not None}
        return await self.queries.read(input.sql, files, rows)

    def _list_tables(self, ref: str) -> QueryRows:
        branch, head = resolve_ref(self.catalog, ref)
        return QueryRows(columns=["name"], rows=[[name] for name in self.catalog.list_tables(branch, head)], head=head)

    def _read_tables(self, ref: str, names: Sequence[str]) -> list[QueriedTable]:
        branch, head = resolve_ref(self.catalog, ref)
        return read_queried_tables(self.catalog, self.io, branch, head, names, self.max_bytes)
