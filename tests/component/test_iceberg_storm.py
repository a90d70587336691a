"""Many processes publish at once by a JDBC catalog, beside a program that knows nothing of Sluice."""

import multiprocessing
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.errors import ServiceUnavailable
from tests.harness.iceberg_lake import IcebergLake, WriterJob, ids

PROCESSES, RUNS, EXTERNAL_ROWS = 4, 5, 12
SHARED = ("shared", "beside")
"""Runs write to both; other programs, too, to the first."""


@dataclass
class Tags:
    """The rows that a process tried to write, by whether its run was published."""

    published: list[tuple[str, int]] = field(default_factory=list)
    unpublished: list[int] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    """The hashes that were published."""


def catalog_of(folder: Path) -> IcebergCatalog:
    return open_iceberg("lake", "sql", f"sqlite:///{folder}/catalog.db", folder.as_uri(), {})


def reader_of(folder: Path) -> SqlCatalog:
    return SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db?timeout=60", warehouse=folder.as_uri())


def opened(folder: Path, namespace: str) -> IcebergLake:
    """Open the lake of the test in another process."""
    lake = IcebergLake.__new__(IcebergLake)
    lake.catalog, lake.reader, lake.namespace = catalog_of(folder), reader_of(folder), namespace
    return lake


def publish_runs(folder: Path, namespace: str, process: int) -> Tags:
    """Publish runs, each with rows of its own, on shared tables and on one of this process; give some of them up."""
    lake, tags = opened(folder, namespace), Tags()
    for run in range(RUNS):
        tables = SHARED if run % 2 == 0 else (f"own{process}",)
        for attempt in range(20):
            tag = (process + 1) * 10_000 + run * 100 + attempt
            if _publish(lake, folder, tables, tag, tags, give_up=run == RUNS - 2):
                break
            time.sleep(random.uniform(0, 0.3))
    return tags


def _publish(lake: IcebergLake, folder: Path, tables: tuple[str, ...], tag: int, tags: Tags, *, give_up: bool) -> bool:
    """Publish a run; return whether it ended, published or given up."""
    job = WriterJob(lake, folder / "jobs")
    for table in tables:
        job.append(table, tag)
    head = job.record()
    merged = False
    for _ in range(10 if not give_up else 0):
        try:
            merged = lake.publish(job.branch, head).merged
            break
        except ServiceUnavailable:
            continue
    else:
        merged = lake.catalog.find_publication(head, "") is not None
    lake.catalog.delete_branch(job.branch.name)
    if not merged:
        tags.unpublished.append(tag)
        return give_up
    tags.published += [(table, tag) for table in tables]
    tags.heads.append(head)
    return True


def append_outside(folder: Path, namespace: str) -> Tags:
    """Append rows to the shared table by PyIceberg alone."""
    reader, tags = reader_of(folder), Tags()
    for number in range(EXTERNAL_ROWS):
        try:
            reader.load_table(f"{namespace}.{SHARED[0]}").append(ids(900_000 + number))
            tags.published.append((SHARED[0], 900_000 + number))
        except CommitFailedException:
            tags.unpublished.append(900_000 + number)
        time.sleep(random.uniform(0, 0.5))
    return tags


@pytest.mark.slow
def test_each_row_of_a_published_run_is_there_once_and_no_other(tmp_path: Path) -> None:
    names = (*SHARED, *(f"own{number}" for number in range(PROCESSES)))
    lake = IcebergLake(catalog_of(tmp_path), reader_of(tmp_path), *names)
    with ProcessPoolExecutor(PROCESSES + 1, multiprocessing.get_context("spawn")) as pool:
        runs = [pool.submit(publish_runs, tmp_path, lake.namespace, number) for number in range(PROCESSES)]
        outside = pool.submit(append_outside, tmp_path, lake.namespace)
        made = [future.result() for future in runs]
    tags = [*made, outside.result()]
    expected = Counter(pair for each in tags for pair in each.published) + Counter(
        (t, n) for t in names for n in (1, 2)
    )
    assert Counter((name, row) for name in names for row in lake.rows(name)) == expected
    given_up = {tag for each in tags for tag in each.unpublished}
    assert not given_up & {tag for _, tag in expected} and len(given_up) >= PROCESSES
    assert sum(len(each.heads) for each in made) >= PROCESSES * (RUNS - 1) - 2  # else it would prove little
    _assert_history(lake, [head for each in made for head in each.heads])


def _assert_history(lake: IcebergLake, heads: list[str]) -> None:
    """Make sure that main's history has each publication once, and each version of a table on top of the one before."""
    lake.catalog.head("main")
    history = [*lake.catalog.history("main")][::-1]
    assert Counter(commit.merged for commit in history if commit.merged) == Counter(heads)
    names = lake.catalog.list_tables("main", history[-1].hash)
    for name in names:
        metadata = lake.reader.load_table(name).metadata
        parents = {each.snapshot_id: each.parent_snapshot_id for each in metadata.snapshots}
        before: int | None = None
        for commit in history:
            version = lake.catalog.table_version("main", name, commit.hash)
            assert version and version.snapshot_id is not None
            ancestor: int | None = version.snapshot_id
            while ancestor not in (None, before):
                ancestor = parents[ancestor]
            assert ancestor == before, f"{name} at {commit.hash[:12]} is not on top of the version before"
            before = version.snapshot_id
        assert before == metadata.current_snapshot_id
