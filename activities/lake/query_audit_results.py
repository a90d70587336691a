"""Query the audit results table by SQL."""

import asyncio
from dataclasses import dataclass

from temporalio import activity

from engine.queries.runner import QueryRunner
from lakehouse.audit.results_table import AuditResultsTable
from sluice.contracts.lake_queries import QueryAuditResultsInput, QueryRows
from sluice.errors import InvalidInput

VIEW = "results"
"""Name of the audit results table in queries."""


@dataclass(frozen=True)
class QueryAuditResultsActivity:
    """The activity `query_audit_results`.

    Needs the audit results table and the query runner. Cancelling the activity ends the query.
    """

    table: AuditResultsTable
    queries: QueryRunner

    @activity.defn(name="query_audit_results")
    async def query_audit_results(self, input: QueryAuditResultsInput) -> QueryRows:
        """Return the rows of a query over the audit results of all ended runs."""
        rows = await asyncio.to_thread(self.table.read_rows)
        if rows is None:
            raise InvalidInput("no run has ended yet")
        return await self.queries.read(input.sql, rows={VIEW: rows})
