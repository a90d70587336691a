"""Compare the time of a diff with that of a full join over both versions of a table, by DuckDB, in one run.

    python -m bench.diff [--rows 50000000] [--files 100] [--changed 2] [--rounds 3]

Writes a table of `rows` rows in `files` files, and a second version in which `changed` files differ by a few rows. Each
round runs the diff as a worker does, with an empty cache, and then a full join of both versions by the same key. Prints
medians and their ratio.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan
from pyiceberg.table import Table

from activities.lake.table_diff import DiffedTable
from engine.queries.runner import QueryRunner
from lakehouse.catalog import TableDiff, TableVersion
from lakehouse.iceberg.differing_files import find_differing_files
from lakehouse.iceberg.table_state import clear_table_caches
from sluice.contracts.table_diffs import TableDiffResult, TableKey

_MEMORY = "2GB"
_EVERY = 1000
"""Interval of the changed rows in a changed file."""


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--changed", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before, after = _build(Path(folder), options.rows // options.files, options.files, options.changed)
        asyncio.run(_measure(Path(folder), before, after, options.rounds))


def _build(folder: Path, size: int, files: int, changed: int) -> tuple[TableVersion, TableVersion]:
    """Write both versions of the table."""
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.orders", _rows(0, 1).schema)
    for number in range(files):
        table.append(_rows(number * size, size))
    before = _version(table)
    for number in range(changed):
        first = number * size
        rows = _rows(first, size)
        amounts = rows["amount"].to_numpy().copy()
        amounts[::_EVERY] += 1
        old = And(GreaterThanOrEqual(term="id", value=first), LessThan(term="id", value=first + size))
        table.overwrite(rows.set_column(2, "amount", pa.array(amounts)), overwrite_filter=old)
    return before, _version(table)


def _rows(first: int, size: int) -> pa.Table:
    ids = np.arange(first, first + size)
    columns = {
        "id": pa.array(ids),
        "customer": pa.array(ids % 100_000),
        "amount": pa.array((ids * 7919 % 1_000_000) / 1000.0),
        "status": pa.array(np.array(["new", "paid", "sent", "done"])[ids % 4]),
        "code": pa.array([f"AB-{each % 1_000_000:06}" for each in ids]),
    }
    return pa.table(columns)


def _version(table: Table) -> TableVersion:
    snapshot = table.current_snapshot()
    return TableVersion(table.metadata_location, snapshot.snapshot_id if snapshot else None)


async def _measure(folder: Path, before: TableVersion, after: TableVersion, rounds: int) -> None:
    queries = QueryRunner(_MEMORY, folder / "scratch")
    diffs, joins = [], []
    try:
        await queries.tables_in("SELECT 1")  # starts the process that the others are forked from
        for _ in range(rounds):
            started = time.perf_counter()
            result = await _diff(before, after, queries)
            diffs.append(time.perf_counter() - started)
            joins.append(await asyncio.to_thread(_timed, lambda: _join(before, after, folder)))
            assert result.rows, result.problem
            read = result.read
            print(
                f"diff {diffs[-1]:.2f} s, both versions completely {joins[-1]:.2f} s; "
                f"{result.rows.changed:,} rows changed, {read.files} of {read.all_files} files read"
            )
    finally:
        await queries.close()
    fast, slow = statistics.median(diffs), statistics.median(joins)
    print(f"median: diff {fast:.2f} s, both versions completely {slow:.2f} s, ratio {slow / fast:.1f}")


async def _diff(before: TableVersion, after: TableVersion, queries: QueryRunner) -> TableDiffResult:
    clear_table_caches()
    files = await asyncio.to_thread(find_differing_files, before, after, {})
    table = DiffedTable(TableDiff("bench.orders", before, after), files, queries)
    return await table.compare(TableKey(columns=["id"], source="chosen"), rows=10, seconds=200)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _join(before: TableVersion, after: TableVersion, folder: Path) -> int:
    """Count the rows that differ by a full join over all files of both versions."""
    files = [_paths(version) for version in (before, after)]
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"SET memory_limit = '{_MEMORY}'; SET temp_directory = '{folder / 'spill'}'")
        sql = (
            "SELECT count(*) FROM read_parquet(?) AS b FULL JOIN read_parquet(?) AS a ON b.id = a.id "
            "WHERE b.id IS NULL OR a.id IS NULL OR b.customer IS DISTINCT FROM a.customer OR b.amount IS DISTINCT FROM "
            "a.amount OR b.status IS DISTINCT FROM a.status OR b.code IS DISTINCT FROM a.code"
        )
        ((count,),) = connection.execute(sql, files).fetchall()
    return int(count)


def _paths(version: TableVersion) -> list[str]:
    every = find_differing_files(None, version, {}).after.own
    return [file.file_path.removeprefix("file://") for file in every]


if __name__ == "__main__":
    main()
