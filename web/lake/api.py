"""The API about the lake: query tables by SQL."""

from typing import Any

from fastapi import Request
from pydantic import ConfigDict, Field

from runtime.lake.query_tables import query_tables, rows_by_column
from sluice.base_model import StrictModel
from sluice.sql.tokens import MAX_LENGTH
from web.api_router import LONGEST, api_router, while_connected
from web.page import ThePage

router = api_router("lake")


class TableQuery(StrictModel):
    """A query of tables."""

    model_config = ConfigDict(defer_build=False)  # FastAPI silences a warning of Pydantic only while it adds a route

    sql: str = Field(min_length=1, max_length=MAX_LENGTH, description="A query in DuckDB's SQL.")
    ref: str = Field(
        default="", max_length=LONGEST, description="A branch, or the run whose branch to read; empty means main."
    )


class QueriedRows(StrictModel):
    """The rows of a query, each an object with its values by column."""

    rows: list[dict[str, Any]]


@router.post("/query")
async def post_query(request: Request, page: ThePage, query: TableQuery) -> QueriedRows:
    """Query tables of main, or of a branch, by SQL, as `query --json` does. It changes nothing."""
    main = page.settings.catalog.sluice_main
    answering = query_tables(page.client, page.installation, query.sql, query.ref, main)
    return QueriedRows(rows=rows_by_column(await while_connected(request, answering)))
