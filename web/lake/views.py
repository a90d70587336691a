"""Views of tables: when each was published last, its rows over time, its checks by run, and nulls per column."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timezone

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse

from runtime.quarantine.quarantined_rows import duckdb_table
from runtime.run.find_run import RunFilter, list_runs
from runtime.run.listed_run import ListedRun, listed_run
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.errors import SluiceError
from sluice.identifiers import name_elements
from sluice.sql.dialect import DUCKDB
from web.audit.history import HeatMap
from web.audit.verdicts import WORDS
from web.lake.freshness import in_effect
from web.lake.history import Publication, publications, rows_plot
from web.page import Page, ThePage

router = APIRouter(include_in_schema=False)
_PUBLICATIONS = 50
"""Maximum number of publications of a table that are shown."""


@router.get("/tables")
async def tables(page: ThePage) -> HTMLResponse:
    """List the tables of main, each with its latest publication."""
    names, attention = await asyncio.gather(_tables(page), page.attention.read())
    published = attention.published if attention.published is not None else await page.attention.published()
    latest: dict[str, ListedRun] = {}
    for run in in_effect(published):
        for table in run.tables:
            latest.setdefault(table, run)
    now = datetime.now(timezone.utc)
    known = attention.freshness(now)
    return page.render(
        "tables.html",
        "Tables",
        tables=[(name, latest.get(name), known.get(name) if known else None) for name in names],
        problems=attention.problems if known is None else [],
        now=now,
    )


@router.get("/tables/{name}")
async def table(page: ThePage, name: str, columns: bool = False, ref: str = "") -> HTMLResponse:
    """Show the history of a table.

    Args:
        columns: True to count the nulls of each column, which reads the whole table.
        ref: branch or run whose nulls are counted, too.
    """
    published, attention = await asyncio.gather(_publications(page, name), page.attention.read())
    now = datetime.now(timezone.utc)
    known = attention.freshness(now, [each.run for each in published])
    checks, problem = await _checks(page, name)
    if not published and not checks.checks and name not in await _tables(page):
        raise HTTPException(404, f"Main has no table {name[:100]}.")
    return page.render(
        "table.html",
        "Tables",
        name=name,
        published=published,
        freshness=known.get(name) if known else None,
        plot=rows_plot(published),
        checks=checks,
        problem=problem,
        columns=await _columns(page, name, ref) if columns or ref else None,
        ref=ref,
        words=WORDS,
        now=now,
    )


async def _tables(page: Page) -> list[str]:
    """Return the names of the tables of main."""
    listed = await _ask(page, "SHOW TABLES", "")
    return [str(row[0]) for row in listed.rows]


async def _publications(page: Page, name: str) -> list[Publication]:
    executions = await list_runs(page.client, _PUBLICATIONS, RunFilter(table=name, state="published"))
    results = await asyncio.gather(*(page.views.read_result(each) for each in executions))
    runs = [await listed_run(each) for each in executions]
    return publications(name, list(zip(runs, results, strict=True)))


async def _checks(page: Page, name: str) -> tuple[HeatMap, str]:
    """Return the verdicts by run, and the reason if they cannot be read."""
    try:
        return await page.history.heat_map(name), ""
    except SluiceError as error:  # no run has ended, or no worker answers
        return HeatMap(), str(error)


@dataclass(frozen=True)
class ColumnNulls:
    """Nulls of one column on main and on another branch."""

    name: str
    type: str
    main: tuple[int, int] | None
    """Number of nulls and of rows; None if main does not have the column."""
    branch: tuple[int, int] | None


async def _columns(page: Page, name: str, ref: str) -> list[ColumnNulls]:
    main = await _count_nulls(page, name, "")
    branch = await _count_nulls(page, name, ref) if ref else {}
    return [
        ColumnNulls(
            column,
            (main.get(column) or branch[column])[0],
            main[column][1:] if column in main else None,
            branch[column][1:] if column in branch else None,
        )
        for column in dict.fromkeys([*main, *branch])
    ]


async def _count_nulls(page: Page, name: str, ref: str) -> dict[str, tuple[str, int, int]]:
    """Return the type, the number of nulls and the number of rows of each column."""
    table = duckdb_table(".".join(name_elements(name)))
    described = await _ask(page, f"DESCRIBE {table}", ref)
    types = {str(row[0]): str(row[1]) for row in described.rows}
    counts = ", ".join(f"count({DUCKDB.column(column)})" for column in types)
    (numbers,) = (await _ask(page, f"SELECT count(*), {counts} FROM {table}", ref)).rows
    rows = int(numbers[0])
    return {
        column: (kind, rows - int(number), rows)
        for (column, kind), number in zip(types.items(), numbers[1:], strict=True)
    }


async def _ask(page: Page, sql: str, ref: str) -> QueryRows:
    return await query_lake(page.client, page.installation, QueryTablesInput(sql=sql, ref=ref), QueryRows)
