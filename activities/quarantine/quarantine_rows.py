"""Move the rows that break checks from a table into its quarantine table, on the attempt's branch."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path

from temporalio import activity

from activities.run.job_folder import create_job_folder
from engine.duckdb_scan import DuckDBScan
from engine.job import SparkJob
from engine.process.heartbeat import run_in_thread
from engine.runner import Spark
from engine.spark.built_in_job import run_built_in_job
from engine.spark.job_errors import job_failure
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.file_rows import TooManyRows
from lakehouse.quarantine.moved_rows import RowMove
from sluice.audit.scan_groups import ScanGroup
from sluice.checks.results import check_title
from sluice.contracts.audit import QuarantineRowsInput, QuarantineRowsResult
from sluice.contracts.spark_jobs import QuarantineRowsSpec
from sluice.errors import error_class
from sluice.publishing.bad_rows import (
    BadRow,
    bad_rows_of_table,
    count_broken_checks,
    group_without_spark,
    most_rows_to_move,
)
from sluice.publishing.branch_properties import marks
from sluice.publishing.quarantine_tables import quarantine_table
from sluice.sealed_answer import new_answer_key

log = logging.getLogger("sluice.quarantine")
_PROGRAM = Path(__file__).resolve().parents[2] / "spark_jobs" / "quarantine_rows.py"


@dataclass(frozen=True)
class _Move:
    """The move of the bad rows of one table, and the query that finds them."""

    tables: RowMove
    group: ScanGroup
    titles: Mapping[int, str]
    """Titles of the checks, by their index in the pipeline file."""
    limit: int
    """Maximum number of rows to move."""


@dataclass(frozen=True)
class QuarantineRowsActivity:
    """The activity `quarantine_rows`. Needs the loader of audited tables, this worker's Spark, and DuckDB."""

    tables: AuditedTables
    spark: Spark
    files: DuckDBScan | None
    """Finder of bad rows in data files; None if only Spark may read rows."""

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog of the audited tables."""
        return self.tables.catalog

    @activity.defn(name="quarantine_rows")
    async def quarantine_rows(self, input: QuarantineRowsInput) -> QuarantineRowsResult:
        """Move the rows that break these checks, unless a table has more such rows than its cap."""
        make_folder = partial(create_job_folder, self.spark.settings.storage, input.audit.run_ref, "quarantine-rows")
        folder = await run_in_thread(make_folder, activity.heartbeat, "preparing the job")
        return await self._move_without_spark(input, folder) or await self._move_by_spark(input, folder)

    async def _move_without_spark(self, input: QuarantineRowsInput, folder: Path) -> QuarantineRowsResult | None:
        """Move the rows by rewriting their data files in this process; None if Spark must move those of a table."""
        if self.files is None:
            return None
        read = partial(self._moves, input, self.files)
        moves = await run_in_thread(read, activity.heartbeat, "reading table metadata")
        if not moves:
            return None
        with_rows: list[tuple[_Move, list[BadRow]]] = []
        for move in moves:
            rows = await self.files.find_bad_rows(move.group, move.titles, folder, activity.heartbeat)
            if not rows:
                return None
            with_rows.append((move, rows))
        result = QuarantineRowsResult(
            bad_rows={move.tables.name: len(rows) for move, rows in with_rows},
            broken_checks={move.tables.name: count_broken_checks(rows) for move, rows in with_rows},
            above_cap={move.tables.name: move.limit for move, rows in with_rows if len(rows) > move.limit},
        )
        if result.above_cap:
            return result
        is_done = await run_in_thread(partial(self._commit, input, with_rows), activity.heartbeat, "moving bad rows")
        return result if is_done else None

    def _moves(self, input: QuarantineRowsInput, files: DuckDBScan) -> list[_Move] | None:
        """Return the move of each table; None if Spark must find or move the rows of one."""
        moves = []
        for name, table in self.tables.load(input.audit):
            if table is None or name not in input.failing:
                continue
            failing = {index: table.checks[index] for index in input.failing[name]}
            group = group_without_spark(table, input.failing[name])
            state, quarantine = (self.tables.state(input.audit, each) for each in (name, quarantine_table(name)))
            if group is None or files.refusals(table, failing) or state is None:
                return None
            move = RowMove(name, state, quarantine_table(name), quarantine)
            if not move.is_possible:
                return None
            requeued, before = input.audit.requeued, input.moved_before.get(name, 0)
            limit = most_rows_to_move(table, input.audit.tables[name], requeued=requeued, moved_before=before)
            moves.append(_Move(move, group, {index: check_title(each) for index, each in failing.items()}, limit))
        return moves

    def _commit(self, input: QuarantineRowsInput, with_rows: Sequence[tuple[_Move, list[BadRow]]]) -> bool:
        """Commit the changes of all tables; return False if Spark must do it.

        The rows of a data file may need too much memory, and PyIceberg does not write by every property of a table.
        """
        run_ref, at = input.audit.run_ref, datetime.fromisoformat(input.audit.now)
        try:
            commits = [move.tables.commits(rows, run_ref.run_id, at, marks(run_ref)) for move, rows in with_rows]
        except (TooManyRows, NotImplementedError, ValueError) as error:
            log.warning("the worker cannot move bad rows, Spark will: %s", type(error).__name__)  # a text has values
            return False
        message = f"Quarantine bad rows of {', '.join(move.tables.name for move, _ in with_rows)}"
        self.catalog.commit_tables(input.audit.branch, input.audit.head, message, [*chain.from_iterable(commits)])
        return True

    async def _move_by_spark(self, input: QuarantineRowsInput, folder: Path) -> QuarantineRowsResult:
        run_ref, catalog = input.audit.run_ref, self.catalog
        spark_catalog = self.spark.settings.catalog_name
        bad_rows = partial(self._bad_rows, input)
        audited = partial(catalog.audited_catalog, spark_catalog, input.audit.branch, input.audit.head, folder)
        audited_catalog, pinned = await run_in_thread(audited, activity.heartbeat, "reading the branch")
        spec = QuarantineRowsSpec(
            spark_catalog=spark_catalog,
            audited_catalog=audited_catalog,
            main=catalog.main,
            run_id=run_ref.run_id,
            at=input.audit.now,
            tables=await run_in_thread(bad_rows, activity.heartbeat, "reading table metadata"),
            answer=str(folder / "answer.json"),
            answer_key=new_answer_key(),
            show_values=input.audit.show_values,
        )
        job = SparkJob(
            program=_PROGRAM,
            folder=folder,
            branch=input.audit.branch,
            catalog={**catalog.spark_properties(spark_catalog, input.audit.branch, None, folder), **pinned},
            run_id=run_ref.run_id,
            attempt=run_ref.attempt,
            pipeline=run_ref.pipeline,
            partition=run_ref.partition,
            runs_apart=input.runs_apart,
        )
        result, answer = await run_built_in_job(self.spark, catalog, job, spec, activity.heartbeat)
        record = partial(catalog.record_job, input.audit.branch, spark_catalog, folder)
        await run_in_thread(record, activity.heartbeat, "recording what the job wrote")
        if answer.error:
            raise error_class(answer.error_kind)(answer.error)
        if result.code != 0:
            refused = catalog.explain_refused_write(result.tail)
            raise job_failure(result, refused, show_values=input.audit.show_values)
        return QuarantineRowsResult(
            bad_rows=answer.bad_rows, broken_checks=answer.broken_checks, above_cap=answer.above_cap
        )

    def _bad_rows(self, input: QuarantineRowsInput) -> list[QuarantineRowsSpec.BadRows]:
        return [
            bad_rows_of_table(
                table,
                input.failing[name],
                input.audit.tables[name],
                input.audit.keys,
                requeued=input.audit.requeued,
                moved_before=input.moved_before.get(name, 0),
            )
            for name, table in self.tables.load(input.audit)
            if table is not None and name in input.failing
        ]
