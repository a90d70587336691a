"""The worker's side of queries: start a process for each query, wait for its answer, and end it in time.

A query that uses too much memory ends its own process, and never the worker (ADR 23).
"""

import asyncio
import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ByteSize, TypeAdapter, ValidationError

from engine.duckdb_session import ParquetView
from engine.private_files import private_folder
from engine.process.fork_client import ForkServer
from engine.process.heartbeat import no_heartbeat
from engine.queries.process import ANSWER
from engine.queries.specification import DiffSpecification, QueryAnswer, QuerySpecification
from engine.queries.sql import NARROW
from sluice.contracts.lake_queries import MAX_RESULT_BYTES, QueryRows
from sluice.contracts.table_diffs import RowDifferences
from sluice.errors import InvalidInput, ServiceUnavailable, SluiceError
from sluice.job_environment import job_environment
from sluice.sizes import format_size

_log = logging.getLogger("sluice.engine")
SECONDS = 45
"""Maximum duration of a query, in seconds. Less than the time-out of its activity."""
_PARSE_SECONDS = 10
"""Maximum time to parse the SQL of a query, in seconds."""
_MODULE = "engine.queries.process"
_ROOT = Path(__file__).resolve().parents[2]
_QUEUE_TIMEOUT = 10.0
"""Maximum time that a query waits for a slot, in seconds."""
_THREADS = 4
_OTHER_READERS = "docs/reading.md has ways to read large tables that DuckDB cannot read"
_FEWER_ROWS = "too many rows differ to compare all of them"
_PREFIX = "query-"
_STALE = 3600.0
"""Age, in seconds, from which a query's folder counts as left by a killed worker and is removed."""
_SIGNAL_BASE = 128


class QueryRunner:
    """A runner of queries that people wrote. It forks a process for each query from one that has the imports."""

    def __init__(
        self,
        memory: str,
        scratch: Path,
        io: Mapping[str, str] | None = None,
        seconds: int = SECONDS,
        *,
        reader: str = "",
        at_once: int = 4,
        queue_timeout: float = _QUEUE_TIMEOUT,
    ) -> None:
        """Prepare; nothing is started before the first query.

        Args:
            memory: the memory that DuckDB may use for a query before it spills to disk, as `2GB`. The process of the
                query may use one and a half times as much.
            scratch: the folder for data that does not fit into memory.
            io: Iceberg's properties for reading files in a store.
            seconds: maximum duration of a query, in seconds.
            reader: name of the module that reads rows for DuckDB, in a process of their own. It has a `write_rows`,
                which gets a request as text and a folder, and returns the paths of Arrow files by table.
            at_once: maximum number of queries that run at a time. It multiplies the memory limit of one query.
            queue_timeout: maximum time that a query waits for a slot, in seconds.
        """
        self._memory, self._scratch, self._io, self._seconds = memory, scratch, dict(io or {}), seconds
        self._limit = int(TypeAdapter(ByteSize).validate_python(memory)) * 3 // 2
        self._threads = min(_THREADS, os.cpu_count() or 1)
        self._reader = reader
        self._forks = ForkServer([_MODULE, *([reader] if reader else [])], scratch / "processes.log")
        self._at_once, self._queue_timeout = at_once, queue_timeout
        self._slots = asyncio.Semaphore(at_once)

    async def tables_in(self, sql: str) -> list[str]:
        """Return the full names of the tables that a query reads.

        Raises:
            InvalidInput: the SQL is not exactly one query, or its parsing exceeds a limit.
        """
        async with self._folder() as folder:
            return (await self._run(folder, min(_PARSE_SECONDS, self._seconds), kind="parse", sql=sql)).tables

    async def read(
        self, sql: str, files: Sequence[ParquetView] = (), rows: Mapping[str, pa.Table] = {}, request: str = ""
    ) -> QueryRows:
        """Return the rows of a query over data files, over rows in memory, and over rows that the reader writes.

        Args:
            request: what the reader writes; empty for nothing.

        Raises:
            InvalidInput: DuckDB refuses the query, it exceeds a limit, or its result is too large.
        """
        async with self._folder() as folder:
            written = await asyncio.to_thread(_write_rows, folder, rows)
            read, used = await self._read_rows(folder, request, self._seconds, _OTHER_READERS)
            answer = await self._run(
                folder,
                self._seconds,
                used=used,
                kind="read",
                sql=sql,
                files=files,
                rows={**written, **read},
                io=self._io,
            )
            assert answer.rows
            return answer.rows

    async def compare(self, diff: DiffSpecification, seconds: int, request: str = "") -> RowDifferences:
        """Return the rows that differ between two versions of a table.

        Args:
            seconds: maximum duration, in seconds.
            request: what the reader writes, each version by the name of its `files`; empty for nothing.

        Raises:
            InvalidInput: DuckDB cannot read the rows, or the comparison exceeds a limit.
        """
        async with self._folder() as folder:
            read, used = await self._read_rows(folder, request, seconds, _FEWER_ROWS)
            versions = (diff.before, diff.after)
            files = [view for each in versions if not each.in_memory for view in (each.files, each.marked)]
            answer = await self._run(
                folder,
                seconds,
                _FEWER_ROWS,
                used,
                kind="diff",
                diff=diff,
                files=files,
                rows=read,
                io=self._io,
            )
            assert answer.differences
            return answer.differences

    async def close(self) -> None:
        """End the fork server. A running query has a guard, which ends it."""
        await self._forks.close()

    @asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        """Yield a folder for one query, once a slot is free."""
        try:
            await asyncio.wait_for(self._slots.acquire(), self._queue_timeout)
        except asyncio.TimeoutError:
            raise ServiceUnavailable(
                f"this worker runs {self._at_once} other queries: run the command again in a moment"
            ) from None
        try:
            folder = await asyncio.to_thread(_make_folder, self._scratch)
            try:
                yield folder
            finally:
                await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
        finally:
            self._slots.release()

    async def _read_rows(
        self, folder: Path, request: str, seconds: int, remedy: str
    ) -> tuple[dict[str, list[str]], int]:
        """Let the reader write rows; return the paths of its files by table, and the time that it used, in seconds."""
        if not request:
            return {}, 0
        started = time.monotonic()
        answer = await self._run(folder, seconds, remedy, kind="write_rows", reader=self._reader, request=request)
        (folder / ANSWER).unlink()
        return answer.written or {}, int(time.monotonic() - started)

    async def _run(self, folder: Path, seconds: int, remedy: str = NARROW, used: int = 0, **query: Any) -> QueryAnswer:
        """Run a process to its end, or end it; return its answer. A message about a limit names the remedy.

        Args:
            used: the time that an earlier process of this query used, in seconds.
        """
        left = max(1, seconds - used)
        mapped = sum(Path(each).stat().st_size for paths in query.get("rows", {}).values() for each in paths)
        specification = QuerySpecification(
            folder=str(folder),
            memory=self._memory,
            memory_limit=self._limit + mapped,
            seconds=left,
            threads=self._threads,
            **query,
        )
        process = await self._forks.start_job(specification.model_dump_json(), _environment(with_s3=bool(self._io)))
        try:
            ended = await asyncio.wait_for(process.watch(folder / "query.log", no_heartbeat), left)
        except asyncio.TimeoutError:
            raise _took_too_long(seconds, remedy) from None
        answer = await asyncio.to_thread(_read_answer, folder / ANSWER)
        if answer and answer.refused:
            raise InvalidInput(answer.refused)
        if answer and not answer.out_of_memory:
            return answer
        if ended.code - _SIGNAL_BASE in (signal.SIGXCPU, signal.SIGALRM):
            raise _took_too_long(seconds, remedy)
        if ended.code <= _SIGNAL_BASE and not answer:
            _log.error("the process of a query ended with code %s: %s", ended.code, "\n".join(ended.tail))
            raise SluiceError("the process of the query failed: see the worker's log")
        nested = "" if answer else ", or is nested too deeply"  # the process ended before it could report the cause
        raise InvalidInput(
            f"the query used more than {format_size(self._limit)} of memory{nested}, and was ended: {remedy}. "
            "SLUICE_SCAN_MEMORY on the worker sets the limit"
        )


def _took_too_long(seconds: int, remedy: str) -> InvalidInput:
    return InvalidInput(f"the query took longer than {seconds} seconds, and was ended: {remedy}")


def _environment(*, with_s3: bool) -> dict[str, str]:
    """Return the environment of query processes: that of a job, with little address space that nothing uses.

    Arrow's own memory pool would reserve a gibibyte, which the limit of memory counts.
    """
    return {
        **job_environment(os.environ, with_s3=with_s3),
        **{"PYTHONPATH": str(_ROOT), "MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"},
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }


def _make_folder(scratch: Path) -> Path:
    """Return a new folder, after removing the folders of queries whose worker was killed."""
    for left in private_folder(scratch).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=scratch))


def _write_rows(folder: Path, rows: Mapping[str, pa.Table]) -> dict[str, list[str]]:
    """Write tables to Arrow files, which the process of the query maps into its memory; return their paths."""
    written = {}
    for number, (name, table) in enumerate(rows.items()):
        path = folder / f"rows-{number}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        written[name] = [str(path)]
    return written


def _read_answer(file: Path) -> QueryAnswer | None:
    """Return the answer that a process wrote, or None if it ended without a complete answer."""
    with suppress(OSError, ValidationError):
        if file.stat().st_size <= 2 * MAX_RESULT_BYTES:
            return QueryAnswer.model_validate_json(file.read_bytes())
    return None
