"""A query runner with an event loop of its own, for tests that are not coroutines."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pyarrow as pa

from engine.queries.runner import QueryRunner
from lakehouse.lake import row_files
from sluice.contracts.lake_queries import QueryRows

MEMORY, SECONDS = "256MB", 180
T = TypeVar("T")


class BlockingQueries:
    """A runner of queries, one after the other. It starts the process that it forks for each query only once."""

    def __init__(self, scratch: Path, **limits: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self.scratch = scratch
        self.runner = QueryRunner(MEMORY, scratch, **{"seconds": SECONDS, "reader": row_files.__name__, **limits})

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of this runner."""
        return self._loop.run_until_complete(work)

    def read(self, sql: str, rows: Mapping[str, pa.Table] = {}) -> QueryRows:
        """Return the rows of a query over tables in memory."""
        return self.wait_for(self.runner.read(sql, rows=rows))

    def close(self) -> None:
        """End the process that queries are forked from."""
        self.wait_for(self.runner.close())
        self._loop.close()


@contextmanager
def blocking_queries(scratch: Path, **limits: Any) -> Iterator[BlockingQueries]:
    """Yield a query runner; close it afterwards."""
    queries = BlockingQueries(scratch, **limits)
    try:
        yield queries
    finally:
        queries.close()


def query_processes(parent: int) -> list[psutil.Process]:
    """Return the running processes of queries that descend from a process."""
    children = psutil.Process(parent).children(recursive=True)
    return [each for each in children if each.name() == "sluice-job" and each.status() != psutil.STATUS_ZOMBIE]
