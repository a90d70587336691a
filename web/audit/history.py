"""The verdicts of each check in the latest runs: the heat map of a table, and the line of a check."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from runtime.quarantine.quarantined_rows import duckdb_text
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import QueryAuditResultsInput, QueryRows
from sluice.errors import SluiceError
from sluice.setting_groups import InstallationSettings
from sluice.sizes import format_count
from sluice.times import format_time
from web.audit.verdicts import LOOKS, WORDS, Look
from web.cached import Cached
from web.templates import cell
from web.timing import TIMING, PageTiming

_RUNS = 30
"""Number of runs of a table in its heat map."""
_OBSERVED = 80
"""Maximum length of an observed value, in characters."""
_FRESH = 60.0
"""Age after which the history of a table is read again, in seconds."""
_MOST_KEPT = 100
"""Maximum number of histories that are kept in memory."""


def verdicts_query(tables: Sequence[str]) -> str:
    """Return the query for the verdicts on tables in the latest runs of each, oldest run first."""
    of_tables = f"table_name IN ({', '.join(map(duckdb_text, tables))})"
    about = "coalesce(nullif(array_to_string(columns, ', '), ''), check_label, '')"
    observed = f"CASE WHEN verdict IN ('fail', 'warn') THEN left(observed, {_OBSERVED}) ELSE '' END"
    return (
        "SELECT table_name, run_id, workflow_id, strftime(max(ended_at), '%Y-%m-%dT%H:%M:%S+00:00') AS ended, outcome, "
        f"list([check_name, {about}, verdict, {observed}] ORDER BY check_name) AS verdicts "
        f"FROM results WHERE {of_tables} GROUP BY table_name, run_id, workflow_id, outcome "
        f"QUALIFY row_number() OVER (PARTITION BY table_name ORDER BY max(ended_at) DESC, run_id) <= {_RUNS} "
        "ORDER BY ended, run_id"
    )


@dataclass(frozen=True)
class HeatCell:
    """The verdict of one check in one run."""

    look: Look
    title: str
    link: str = ""
    """Address of the run."""


@dataclass(frozen=True)
class HeatMap:
    """Verdicts by check and run, the oldest run first."""

    runs: list[tuple[str, str, str]] = field(default_factory=list)
    """Address, title and outcome of each run."""
    checks: list[tuple[str, list[HeatCell]]] = field(default_factory=list)


def heat_maps(answer: QueryRows) -> dict[str, HeatMap]:
    """Return the heat map of each table in the answer to `verdicts_query`."""
    rows: dict[str, list[list[Any]]] = {}
    for table, *values in answer.rows:
        rows.setdefault(table, []).append(values)
    return {table: _heat_map(values) for table, values in rows.items()}


def _heat_map(rows: Sequence[Sequence[Any]]) -> HeatMap:
    runs: dict[str, tuple[str, str, str]] = {}
    absent: dict[str, HeatCell] = {}
    verdicts: dict[str, dict[str, HeatCell]] = {}
    for run_id, workflow_id, ended, outcome, checks in rows:
        when, link = format_time(ended), f"/runs/{workflow_id}/{run_id}"
        runs[run_id] = (link, f"{when}: {outcome}", outcome)
        absent[run_id] = HeatCell("notrun", f"{when}: {_word('notrun')}", link)
        for kind, about, verdict, observed in checks:
            look = LOOKS.get(verdict, "notrun")
            shown = f", observed {cell(observed)}" if observed else ""
            of_check = verdicts.setdefault(f"{kind}({about})" if about else kind, {})
            of_check[run_id] = _worse(of_check.get(run_id), HeatCell(look, f"{when}: {_word(look)}{shown}", link))
    return HeatMap(
        runs=list(runs.values()),
        checks=[
            (name, [of_run.get(run_id, missing) for run_id, missing in absent.items()])
            for name, of_run in sorted(verdicts.items())
        ],
    )


def _worse(one: HeatCell | None, other: HeatCell) -> HeatCell:
    """Return the worse of the verdicts of two checks with the same name."""
    order = list(WORDS)
    return other if one is None or order.index(other.look) < order.index(one.look) else one


def _word(look: Look) -> str:
    return WORDS[look].lower()


@dataclass(frozen=True)
class CheckLine:
    """The verdicts of one check in the latest runs, the oldest first."""

    cells: list[HeatCell]

    @property
    def summary(self) -> str:
        """Number of runs, and of each verdict that is not a pass: `last 30 runs: 2 failed, 1 not run`."""
        number = Counter(each.look for each in self.cells)
        trouble = [f"{number[look]} {_word(look)}" for look in WORDS if number[look] and look != "passed"]
        return f"last {format_count(len(self.cells), 'run')}: {', '.join(trouble) or 'all passed'}"


@dataclass(frozen=True)
class CheckLines:
    """The lines of the checks of a run, and the reason if they cannot be shown."""

    maps: Mapping[str, HeatMap] = field(default_factory=dict)
    problem: str = ""

    def line(self, table: str, check: str) -> CheckLine | None:
        """Return the line of a check of a table; None if no run with it has ended."""
        of_table = self.maps.get(table, HeatMap())
        return next((CheckLine(cells) for name, cells in of_table.checks if name == check), None)


class VerdictHistory:
    """Reads the verdicts of the latest runs from the lake, once for all readers."""

    def __init__(self, client: Client, installation: InstallationSettings, timing: PageTiming = TIMING) -> None:
        self._client, self._installation, self._timing = client, installation, timing
        self._kept: dict[tuple[str, ...], Cached[dict[str, HeatMap]]] = {}

    async def heat_map(self, table: str) -> HeatMap:
        """Return the heat map of a table.

        Raises:
            SluiceError: no run has ended, or no worker answers.
        """
        return (await self._read((table,))).get(table, HeatMap())

    async def lines(self, tables: Sequence[str]) -> CheckLines:
        """Return the lines of the checks of tables, or the reason if they cannot be read soon."""
        if not tables:
            return CheckLines()
        try:
            reading = self._read(tuple(sorted(tables)))
            return CheckLines(await asyncio.wait_for(reading, self._timing.patience))
        except asyncio.TimeoutError:
            return CheckLines(problem="The verdicts of earlier runs are still being read: reload the page.")
        except (SluiceError, RPCError) as error:
            return CheckLines(problem=f"The verdicts of earlier runs are not known: {error}")

    async def _read(self, tables: tuple[str, ...]) -> dict[str, HeatMap]:
        if tables not in self._kept:
            self._kept[tables] = Cached(lambda: self._query(tables), _FRESH)
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return await self._kept[tables].get()

    async def _query(self, tables: tuple[str, ...]) -> dict[str, HeatMap]:
        query = QueryAuditResultsInput(sql=verdicts_query(tables))
        return heat_maps(await query_lake(self._client, self._installation, query, QueryRows))
