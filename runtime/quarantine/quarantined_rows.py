"""Quarantined rows on main, for `quarantine list` and `quarantine show`."""

from dataclasses import dataclass

from temporalio.client import Client

from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput, RequeueSelection
from sluice.errors import SluiceError
from sluice.identifiers import name_elements
from sluice.publishing.quarantine_tables import AT, CHECKS, RUN, SUFFIX, is_quarantine_table, quarantine_table
from sluice.setting_groups import InstallationSettings
from sluice.sql.dialect import DUCKDB
from sluice.sql.expression import likely_duckdb

_MOST_RUNS = 20
"""Maximum number of runs listed for a table."""
_PREVIEWED = 5
_NEW = "new "


@dataclass(frozen=True)
class QuarantinedRows:
    """The rows of one run in a quarantine table of main."""

    table: str
    """Table that the rows were kept out of."""
    run_id: str
    at: str
    """Time of the quarantine, in ISO 8601."""
    rows: int


@dataclass(frozen=True)
class ShownRows:
    """Rows of a quarantine table: their number, the checks that they break, and some of them."""

    table: str
    rows: int
    checks: dict[str, int]
    """Number of rows that break each check."""
    sample: QueryRows
    run_id: str = ""
    """Id of the run that quarantined the rows; empty for all runs."""


def duckdb_table(name: str) -> str:
    """Return the name of a table in DuckDB's SQL, with the namespace as one part."""
    *namespace, table = name_elements(name)
    return f"{DUCKDB.column('.'.join(namespace))}.{DUCKDB.column(table)}"


def duckdb_text(value: str) -> str:
    """Return a string literal in DuckDB's SQL. A backslash escapes nothing there."""
    return "'" + value.replace("'", "''") + "'"


async def list_quarantined_rows(
    client: Client, settings: InstallationSettings
) -> tuple[list[QuarantinedRows], list[str]]:
    """Return the rows in the quarantine tables of main by run, newest first, at most 20 runs of each table.

    Returns:
        The rows, and the tables that could not be read, each with the reason.
    """
    listed: list[QuarantinedRows] = []
    problems = []
    for name in await _quarantine_tables(client, settings):
        sql = (
            f"SELECT {RUN}, max({AT}), count(*) FROM {duckdb_table(name)} GROUP BY {RUN} "
            f"ORDER BY max({AT}) DESC LIMIT {_MOST_RUNS}"
        )
        try:
            rows = (await _query(client, settings, sql)).rows
        except SluiceError as error:
            problems.append(f"{name}: {error}")
            continue
        listed += [QuarantinedRows(name.removesuffix(SUFFIX), str(run), str(at), count) for run, at, count in rows]
    return sorted(listed, key=lambda each: each.at, reverse=True), problems


async def show_quarantined_rows(
    client: Client, settings: InstallationSettings, named: str, limit: int
) -> list[ShownRows]:
    """Return the rows that a run quarantined, or those of a table; empty if there are none.

    Args:
        named: a run id, a table, or its quarantine table.
        limit: maximum number of rows returned for each table.
    """
    tables = await _quarantine_tables(client, settings)
    own = [name for name in tables if named in (name, name.removesuffix(SUFFIX))]
    where = "" if own else f" WHERE {RUN} = {duckdb_text(named)}"
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


async def preview_requeue(
    client: Client, settings: InstallationSettings, table: str, selection: RequeueSelection
) -> QueryRows:
    """Return the first rows of a requeue, with their new values in columns named `new COLUMN`.

    DuckDB computes these values, while Spark computes those of the requeue: an expression may differ between them.

    Raises:
        SluiceError: DuckDB cannot answer.
    """
    values = [value.partition("=") for value in selection.values]
    new = "".join(f', {likely_duckdb(sql)} AS "{_NEW}{column.strip()}"' for column, _, sql in values)
    conditions = [f"{RUN} = {duckdb_text(selection.run)}"] if selection.run else []
    conditions += [f"({likely_duckdb(selection.where)})"] if selection.where else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    hidden = f"{CHECKS}, {RUN}, {AT}"
    source = duckdb_table(quarantine_table(table))
    return await _query(client, settings, f"SELECT * EXCLUDE ({hidden}){new} FROM {source}{where} LIMIT {_PREVIEWED}")


def with_new_values(preview: QueryRows) -> QueryRows:
    """Return the rows of a preview with `old -> new` in the columns that change."""
    names = [name for name in preview.columns if not name.startswith(_NEW)]
    rows = []
    for row in preview.rows:
        values = dict(zip(preview.columns, row, strict=True))
        changed = {name: _changed(values[name], values[_NEW + name]) for name in names if _NEW + name in values}
        rows.append([changed.get(name, values[name]) for name in names])
    return QueryRows(columns=names, rows=rows)


def _changed(old: object, new: object) -> object:
    return old if old == new else f"{'null' if old is None else old} -> {'null' if new is None else new}"


async def _quarantine_tables(client: Client, settings: InstallationSettings) -> list[str]:
    names = (await _query(client, settings, "SHOW TABLES")).rows
    return [str(name) for (name,) in names if is_quarantine_table(str(name))]


async def _query(client: Client, settings: InstallationSettings, sql: str) -> QueryRows:
    return await query_lake(client, settings, QueryTablesInput(sql=sql), QueryRows)
