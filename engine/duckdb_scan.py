"""DuckDB's scan engine, which reads the undecided data files in the worker's own process."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from engine.duckdb_session import FILE, POSITION, DuckDBSession, ParquetView, local_path
from engine.process.heartbeat import Heartbeat, wait_despite_cancellation, wait_with_heartbeat
from engine.scan import ScanContext
from sluice.audit.answers import check_key
from sluice.audit.engine_choice import DUCKDB_KINDS, duckdb_refusals
from sluice.audit.scan_groups import ScanGroup, TableView
from sluice.audit.tables import AuditedTable
from sluice.checks.base import ROWS, Check
from sluice.checks.verdicts import AnsweredBy, sample_size
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.errors import ServiceUnavailable
from sluice.publishing.bad_rows import BadRow
from sluice.setting_groups import ScanSettings
from sluice.sql.dialect import DUCKDB, Dialect
from sluice.sql.values import kind_of

_LOCK_SECONDS = 0.5
_SAMPLE_MEMORY = "256MB"
_MOST_BAD_ROWS = 1_000_000
"""Maximum number of bad rows that a worker moves itself: it holds their positions in memory."""
_ONE_SCAN = threading.Lock()
"""A lock that allows one scan at a time: each scan uses all processors, and the memory that the settings allow."""
log = logging.getLogger("sluice.scan")
_T = TypeVar("_T")


@dataclass(frozen=True)
class DuckDBScan:
    """The implementation of `SamplingEngine` with DuckDB.

    Needs the settings of scans, and `io`, Iceberg's properties for reading the lake.
    """

    settings: ScanSettings
    io: Mapping[str, str] = field(default_factory=dict)
    name: AnsweredBy = "duckdb"
    dialect: Dialect = DUCKDB

    def refusals(self, table: AuditedTable, checks: Mapping[int, Check]) -> dict[int, str]:
        """Return the checks that DuckDB must not answer, each with the reason."""
        return duckdb_refusals(table, checks, self.settings.sluice_scan_bytes)

    async def scan(self, groups: Sequence[ScanGroup], context: ScanContext) -> dict[str, ScanAnswer]:
        """Answer the checks that DuckDB can answer.

        A cancellation interrupts the running query and waits until it has ended.
        """

        def scan(session: DuckDBSession) -> dict[str, ScanAnswer]:
            return scan_groups_by(session, groups)

        return await self._in_session(scan, context.folder, context.heartbeat)

    async def find_bad_rows(
        self, group: ScanGroup, titles: Mapping[int, str], folder: Path, heartbeat: Heartbeat
    ) -> list[BadRow] | None:
        """Return the rows of a group's files that break its checks; None if DuckDB cannot find them, or not all.

        Args:
            titles: the title of each check.
            folder: the folder of the job, for spilled rows.
        """

        def find(session: DuckDBSession) -> list[BadRow] | None:
            try:
                rows = find_bad_rows(session, group, titles)
                return rows if len(rows) <= _MOST_BAD_ROWS else None
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                reason = str(error).split("\n", 1)[0]
                log.warning("%s: DuckDB cannot find the bad rows, Spark will: %s", group.table.name, reason)
                return None

        return await self._in_session(find, folder, heartbeat)

    async def _in_session(self, work: Callable[[DuckDBSession], _T], folder: Path, heartbeat: Heartbeat) -> _T:
        session = DuckDBSession(self.settings.sluice_scan_memory, folder / "scratch", io=self.io)
        task = asyncio.create_task(asyncio.to_thread(_one_at_a_time, session, work))
        try:
            await wait_with_heartbeat(task, heartbeat, "scanning data files")
        except BaseException:
            session.interrupt()
            await wait_despite_cancellation(task)
            raise
        return task.result()

    def sample(self, group: ScanGroup, scratch: Path) -> list[dict[str, Any]]:
        """Return a few bad rows for a group's only check, or an empty list if DuckDB cannot read them."""
        with DuckDBSession(_SAMPLE_MEMORY, scratch, io=self.io) as session:
            try:
                (answer,) = scan_group(session, group).values()
            except duckdb.Error as error:
                log.warning("%s: no sample of bad rows: %s", group.table.name, str(error).split("\n", 1)[0])
                return []
        return answer.sample


def _one_at_a_time(session: DuckDBSession, work: Callable[[DuckDBSession], _T]) -> _T:
    """Do the work, then close the session in this thread: only this thread knows that no query is running."""
    with session:
        while not _ONE_SCAN.acquire(timeout=_LOCK_SECONDS):
            if session.interrupted:
                raise duckdb.InterruptException("interrupted before the scan began")
        try:
            return work(session)
        finally:
            _ONE_SCAN.release()


def scan_groups_by(session: DuckDBSession, groups: Sequence[ScanGroup]) -> dict[str, ScanAnswer]:
    """Answer scan groups one after the other, and omit the groups that DuckDB cannot answer.

    Raises:
        ServiceUnavailable: the object store does not serve data files now. Spark would have to wait for it, too.
    """
    answers: dict[str, ScanAnswer] = {}
    for group in groups:
        try:
            answers |= scan_group(session, group)
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            if session.store_trouble:
                trouble = str(session.store_trouble)[:300]
                raise ServiceUnavailable(f"the object store does not serve {group.table.name}: {trouble}") from error
            reason = str(error).split("\n", 1)[0]
            log.warning("%s: DuckDB cannot answer, Spark will: %s", group.table.name, reason)
    return answers


def scan_group(session: DuckDBSession, group: ScanGroup) -> dict[str, ScanAnswer]:
    """Answer the checks of one scan group, by `check_key`."""
    table = group.table.name
    return session.answer(
        [_parquet_view(view) for view in group.views],
        {check_key(table, index): query for index, query in group.queries.items()},
        group.table.statistics.types,
        with_other_rows=bool(group.other_files),
        sample_rows=sample_size(len(group.queries)),
        disjoint_views={
            check_key(table, index): [_parquet_view(view) for view in views]
            for index, views in group.disjoint_views.items()
        },
    )


def find_bad_rows(session: DuckDBSession, group: ScanGroup, titles: Mapping[int, str]) -> list[BadRow]:
    """Return the rows of a group's files for which a condition of a check is true.

    Raises:
        duckdb.Error: DuckDB cannot run the query.
    """
    paths = {local_path(file.path): file.path for file in group.files}
    columns = {name for query in group.queries.values() for name in query.columns}
    (rows,) = [_parquet_view(view) for view in group.views if view.name == ROWS]
    view = replace(rows, fields=[each for each in rows.fields if each.name in columns], with_position=True)
    bad = [f"({group.queries[index].bad})" for index in titles]
    listed = ", ".join(f"{condition} AS bad_{number}" for number, condition in enumerate(bad))
    with session.tables([view], {}) as connection:
        located = session.select(
            connection,
            f"SELECT {FILE}, {POSITION}, {listed} FROM {ROWS} WHERE {' OR '.join(bad)} LIMIT {_MOST_BAD_ROWS + 1}",
        ).to_pylist()
    names = [(f"bad_{number}", title) for number, title in enumerate(titles.values())]
    return [
        BadRow(paths[row[FILE]], row[POSITION], [title for column, title in names if row[column]]) for row in located
    ]


def _parquet_view(view: TableView) -> ParquetView:
    readable = [each for each in view.fields if kind_of(each.type) in DUCKDB_KINDS]
    fields = [each for each in readable if each.name in view.columns] or readable
    deletes = {file.path: file.delete_files for file in view.files if file.deletes}
    return ParquetView(view.name, fields, [file.path for file in view.files], deletes)
