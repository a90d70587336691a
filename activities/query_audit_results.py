"""Query the audit results table by SQL."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.audit_results_table import AuditResultsTable
from lakehouse.sql_query import run_sql
from sluice.contracts.lake_queries import QueryAuditResultsInput, QueryRows
from sluice.errors import InvalidInput


@dataclass(frozen=True)
class QueryAuditResultsActivity:
    """The activity `query_audit_results`. Needs the audit results table, and how much memory a query may use."""

    table: AuditResultsTable
    memory: str

    @activity.defn(name="query_audit_results")
    def query_audit_results(self, input: QueryAuditResultsInput) -> QueryRows:
        """Return the rows of a query over the results of all runs that ended."""
        with as_application_error():
            rows = self.table.read_rows()
            if rows is None:
                raise InvalidInput("no run has ended yet")
            return run_sql(rows, input.sql, self.memory)
