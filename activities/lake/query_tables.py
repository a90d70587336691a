"""Query tables of main or of a branch by SQL."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio import activity

from engine.duckdb_session import ParquetView
from engine.queries.runner import QueryRunner
from engine.queries.sql import asks_for_tables
from lakehouse.catalog import BranchCatalog
from lakehouse.lake.queried_tables import MAX_BYTES, QueriedTable, find_queried_tables, resolve_ref
from lakehouse.lake.row_files import RowsRequest
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
    """Maximum size, in bytes, of the data files whose rows PyIceberg reads."""

    @activity.defn(name="query_tables")
    async def query_tables(self, input: QueryTablesInput) -> QueryRows:
        """Return the rows of a query, which reads all tables at one hash. `SHOW TABLES` lists the tables."""
        if asks_for_tables(input.sql):
            return await asyncio.to_thread(self._list_tables, input.ref)
        names = await self.queries.tables_in(input.sql)
        tables = await asyncio.to_thread(self._find_tables, input.ref, names)
        files = [ParquetView(each.name, each.fields, each.paths) for each in tables if each.rows is None]
        rows = [each.rows for each in tables if each.rows is not None]
        request = RowsRequest(tables=rows, io=self.io).model_dump_json() if rows else ""
        return await self.queries.read(input.sql, files, request=request)

    def _list_tables(self, ref: str) -> QueryRows:
        branch, head = resolve_ref(self.catalog, ref)
        return QueryRows(columns=["name"], rows=[[name] for name in self.catalog.list_tables(branch, head)], head=head)

    def _find_tables(self, ref: str, names: Sequence[str]) -> list[QueriedTable]:
        branch, head = resolve_ref(self.catalog, ref)
        return find_queried_tables(self.catalog, self.io, branch, head, names, self.max_bytes)
