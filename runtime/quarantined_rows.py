"""Quarantined rows on main, as `quarantine` lists and shows them."""

from dataclasses import dataclass

from temporalio.client import Client

from runtime.short_workflow import query_lake
from sluice.audit.bad_rows import AT, CHECKS, RUN, SUFFIX, is_quarantine_table
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.identifiers import literal
from sluice.settings import Settings

_MOST_RUNS = 20
"""Maximum number of runs that are listed for a table."""


@dataclass(frozen=True)
class QuarantinedRows:
    """The rows of one run in a quarantine table of main."""

    table: str
    """The table that they were kept out of."""
    run_id: str
    at: str
    """When they were quarantined, in ISO 8601."""
    rows: int


@dataclass(frozen=True)
class ShownRows:
    """Rows of a quarantine table: their number, the checks that they break, and some of them."""

    table: str
    rows: int
    checks: dict[str, int]
    """How many of the rows break each check."""
    sample: QueryRows
    run_id: str = ""
    """The run that quarantined them; empty for all runs."""


def duckdb_table(name: str) -> str:
    """Return the name of a table in SQL of DuckDB."""
    return ".".join(f'"{part}"' for part in name.split("."))


async def list_quarantined_rows(client: Client, settings: Settings) -> list[QuarantinedRows]:
    """Return the rows in the quarantine tables of main by run, the newest first, at most 20 runs of each table."""
    listed = []
    for name in await _quarantine_tables(client, settings):
        answer = await _query(
            client,
            settings,
            f"SELECT {RUN}, max({AT}), count(*) FROM {duckdb_table(name)} GROUP BY {RUN} "
            f"ORDER BY max({AT}) DESC LIMIT {_MOST_RUNS}",
        )
        listed += [QuarantinedRows(name.removesuffix(SUFFIX), str(run), str(at), rows) for run, at, rows in answer.rows]
    return sorted(listed, key=lambda each: each.at, reverse=True)


async def show_quarantined_rows(client: Client, settings: Settings, named: str, limit: int) -> list[ShownRows]:
    """Return the rows that a run quarantined, or those of a table; nothing where there are none.

    Args:
        named: a run id, a table, or its quarantine table.
        limit: how many rows of each table to return.
    """
    tables = await _quarantine_tables(client, settings)
    own = [name for name in tables if named in (name, name.removesuffix(SUFFIX))]
    where = "" if own else f" WHERE {RUN} = {literal(named)}"
    shown = []
    for name in own or tables:
        table = duckdb_table(name)
        counts = await _query(
            client,
            settings,
            f"SELECT title, count(*) FROM (SELECT unnest({CHECKS}) AS title FROM {table}{where}) GROUP BY title "
            "ORDER BY count(*) DESC, title",
        )
        if not counts.rows:
            continue
        total = await _query(client, settings, f"SELECT count(*) FROM {table}{where}")
        sample = await _query(client, settings, f"SELECT * FROM {table}{where} ORDER BY {AT} DESC LIMIT {limit}")
        checks = {str(title): int(count) for title, count in counts.rows}
        shown.append(ShownRows(name.removesuffix(SUFFIX), int(total.rows[0][0]), checks, sample, "" if own else named))
    return shown


async def _quarantine_tables(client: Client, settings: Settings) -> list[str]:
    names = (await _query(client, settings, "SHOW TABLES")).rows
    return [str(name) for (name,) in names if is_quarantine_table(str(name))]


async def _query(client: Client, settings: Settings, sql: str) -> QueryRows:
    return await query_lake(client, settings, QueryTablesInput(sql=sql), QueryRows)
