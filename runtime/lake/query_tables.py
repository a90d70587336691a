"""Query tables of main or of a branch by SQL, for the command `query` and the API."""

from collections.abc import Sequence
from typing import Any

from temporalio.client import Client

from runtime.run.find_run import find_run
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.errors import InvalidPipeline
from sluice.setting_groups import InstallationSettings


async def query_tables(client: Client, settings: InstallationSettings, sql: str, ref: str, main: str) -> QueryRows:
    """Let a worker answer a query.

    Args:
        main: name of the main branch.
        ref: a branch, or the run whose branch to read; empty means main.

    Raises:
        SluiceError: the query is refused, or no worker answers.
    """
    request = QueryTablesInput(sql=sql, ref=await _run_id(client, ref, main))
    return await query_lake(client, settings, request, QueryRows)


def rows_by_column(answer: QueryRows) -> list[dict[str, Any]]:
    """Return each row with its values by the names of their columns.

    Raises:
        InvalidPipeline: two columns have the same name.
    """
    _refuse_equal_names(answer.columns)
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


async def _run_id(client: Client, ref: str, main: str) -> str:
    """Return the run id of a named run, or the name itself if Temporal does not know such a run."""
    if "/" in ref or ref in ("", main):
        return ref
    try:
        run = await find_run(client, ref)
    except InvalidPipeline:
        return ref
    return run.handle.run_id or ref


def _refuse_equal_names(columns: Sequence[str]) -> None:
    """Check that one object can contain every column.

    Raises:
        InvalidPipeline: two columns have the same name.
    """
    repeated = sorted({name for name in columns if list(columns).count(name) > 1})
    if repeated:
        raise InvalidPipeline(f"several columns are called {repeated[0]!r}: rename them with AS")
