"""Many processes publish at once, by a JDBC catalog and by a REST server, while another program appends directly."""

import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.errors import ServiceUnavailable, UnexpectedWrite
from tests.harness.forked import forked_pool
from tests.harness.iceberg_lake import IcebergLake, WriterJob, ids
from tests.harness.iceberg_rest import IcebergRestServer

PROCESSES, RUNS, EXTERNAL_ROWS = 4, 5, 12
SHARED = ("shared", "beside")
"""Tables that all runs write. Other programs also write the first one."""


@dataclass
class Tags:
    """The rows that a process tried to write, grouped by the outcome of their runs."""

    published: list[tuple[str, int]] = field(default_factory=list)
    unpublished: list[int] = field(default_factory=list)
    half: list[int] = field(default_factory=list)
    """Rows of runs that failed as half published, as can happen if tables are not committed atomically."""
    heads: list[str] = field(default_factory=list)
    """The hashes that were published."""


@dataclass(frozen=True)
class Address:
    """The address of the catalog, for each process to open it."""

    folder: Path
    kind: str
    uri: str

    def catalog(self) -> IcebergCatalog:
        """Open the catalog as Sluice does."""
        return open_iceberg("lake", self.kind, self.uri, self.folder.as_uri(), {})

    def reader(self) -> Catalog:
        """Open the catalog by plain PyIceberg."""
        if self.kind == "rest":
            return RestCatalog("lake", uri=self.uri)
        uri = self.uri.replace("postgresql:", "postgresql+psycopg:")
        return SqlCatalog("lake", uri=uri, warehouse=self.folder.as_uri())


@pytest.fixture(params=["sqlite", "postgresql", "rest"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    if request.param == "sqlite":
        return Address(tmp_path, "sql", f"sqlite:///{tmp_path}/catalog.db?timeout=60")
    if request.param == "postgresql":
        return Address(tmp_path, "sql", request.getfixturevalue("postgres_server").create_database())
    server: IcebergRestServer = request.getfixturevalue("iceberg_rest")
    return Address(tmp_path, "rest", server.uri)


def opened(address: Address, namespace: str) -> IcebergLake:
    """Open the lake of the test in another process."""
    lake = IcebergLake.__new__(IcebergLake)
    lake.catalog, lake.reader, lake.namespace = address.catalog(), address.reader(), namespace
    return lake


def publish_runs(address: Address, namespace: str, process: int) -> Tags:
    """Publish runs with rows of their own, on the shared tables and on a table of this process; give some runs up."""
    lake, tags = opened(address, namespace), Tags()
    for run in range(RUNS):
        tables = SHARED if run % 2 == 0 else (f"own{process}",)
        for attempt in range(20):
            tag = (process + 1) * 10_000 + run * 100 + attempt
            if _publish(lake, address.folder, tables, tag, tags, give_up=run == RUNS - 2):
                break
            time.sleep(random.uniform(0, 0.3))
    return tags


def _publish(lake: IcebergLake, folder: Path, tables: tuple[str, ...], tag: int, tags: Tags, *, give_up: bool) -> bool:
    """Publish a run; return True if it ended, published or given up."""
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
        except UnexpectedWrite:
            tags.half.append(tag)
            return True
    else:
        merged = lake.catalog.find_publication(head, "") is not None
    lake.catalog.delete_branch(job.branch.name)
    if not merged:
        tags.unpublished.append(tag)
        return give_up
    tags.published += [(table, tag) for table in tables]
    tags.heads.append(head)
    return True


def append_outside(address: Address, namespace: str) -> Tags:
    """Append rows to the shared table by plain PyIceberg."""
    reader, tags = address.reader(), Tags()
    for number in range(EXTERNAL_ROWS):
        try:
            reader.load_table(f"{namespace}.{SHARED[0]}").append(ids(900_000 + number))
            tags.published.append((SHARED[0], 900_000 + number))
        except CommitFailedException:
            tags.unpublished.append(900_000 + number)
        time.sleep(random.uniform(0, 0.5))
    return tags


@pytest.mark.slow
def test_each_row_of_a_published_run_is_there_once_and_no_other(address: Address) -> None:
    names = (*SHARED, *(f"own{number}" for number in range(PROCESSES)))
    lake = IcebergLake(address.catalog(), address.reader(), *names)
    first = lake.catalog.head("main")  # other tests have published to the same server
    with forked_pool(PROCESSES + 1) as pool:
        runs = [pool.submit(publish_runs, address, lake.namespace, number) for number in range(PROCESSES)]
        outside = pool.submit(append_outside, address, lake.namespace)
        made = [future.result() for future in runs]
    tags = [*made, outside.result()]
    expected = Counter(pair for each in tags for pair in each.published) + Counter(
        (t, n) for t in names for n in (1, 2)
    )
    half = {tag for each in tags for tag in each.half}
    assert address.kind == "rest" or not half
    present = Counter((name, row) for name in names for row in lake.rows(name) if row not in half)
    assert present == expected
    given_up = {tag for each in tags for tag in each.unpublished}
    assert not given_up & {tag for _, tag in expected} and len(given_up) >= PROCESSES
    assert sum(len(each.heads) for each in made) >= PROCESSES * (RUNS - 1) - 2  # fewer would prove little
    _assert_history(lake, first, [head for each in made for head in each.heads])


def _assert_history(lake: IcebergLake, first: str, heads: list[str]) -> None:
    """Assert that main's history since a hash has each publication once, and each version on top of the one before."""
    lake.catalog.head("main")
    since = itertools.takewhile(lambda commit: commit.hash != first, lake.catalog.history("main"))
    history = [*since][::-1]
    assert Counter(commit.merged for commit in history if commit.merged) == Counter(heads)
    tables = lake.catalog.list_tables("main", history[-1].hash)
    for name in (each for each in tables if each.startswith(f"{lake.namespace}.")):
        metadata = lake.reader.load_table(name).metadata
        parents = {each.snapshot_id: each.parent_snapshot_id for each in metadata.snapshots}
        earlier = lake.catalog.table_version("main", name, first)
        before = earlier.snapshot_id if earlier else None
        for commit in history:
            version = lake.catalog.table_version("main", name, commit.hash)
            assert version and version.snapshot_id is not None
            ancestor: int | None = version.snapshot_id
            while ancestor not in (None, before):
                ancestor = parents[ancestor]
            assert ancestor == before, f"{name} at {commit.hash[:12]} is not on top of the version before"
            before = version.snapshot_id
        assert before == metadata.current_snapshot_id
