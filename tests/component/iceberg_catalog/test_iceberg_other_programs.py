"""Publishes at the same time as programs without Sluice, in catalogs that do not commit several tables atomically."""

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lakehouse.catalog import TableCommit
from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.log_commits import LogCommit
from lakehouse.iceberg_catalog.publication import Publisher
from lakehouse.iceberg_catalog.publication_commits import changes_of
from sluice.contracts.references import BranchRef
from sluice.errors import CatalogRefused, ServiceUnavailable, UnexpectedWrite
from tests.harness.iceberg_guarantees import open_as
from tests.harness.iceberg_lake import SCHEMA, IcebergLake, WriterJob, abandon_publications, before_moving

BOTH = ("one", "two")


class Crash(Exception):
    """A stand-in for the end of the process."""


@pytest.fixture(params=["checked", "one by one"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> IcebergLake:
    catalog = open_as(tmp_path, request.param)
    reader = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    return IcebergLake(catalog, reader, *BOTH)


def another(lake: IcebergLake, folder: Path) -> IcebergCatalog:
    """Open the catalog as another process would."""
    return open_as(folder, lake.catalog.capabilities.guarantee or lake.catalog._branches.committer.guarantee)


def written(lake: IcebergLake, folder: Path) -> tuple[BranchRef, str]:
    job = WriterJob(lake, folder / "jobs")
    for table in BOTH:
        job.append(table, 3)
    return job.branch, job.record()


def moved_and_crashed(lake: IcebergLake, branch: BranchRef, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish, and crash after the tables have moved and before the log does."""

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patched, pytest.raises(Crash):
        patched.setattr(Publisher, "_finish", crash)
        lake.publish(branch, head)


def test_a_look_at_main_beside_a_publish_does_not_record_its_tables(
    lake: IcebergLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch, head = written(lake, tmp_path)
    other = another(lake, tmp_path)
    load = other._branches.tables.load_all
    crashed: list[bool] = []

    def load_after_a_publish_began():  # type: ignore[no-untyped-def]
        if not crashed:
            crashed.append(True)
            moved_and_crashed(lake, branch, head, monkeypatch)
        return load()

    monkeypatch.setattr(other._branches.tables, "load_all", load_after_a_publish_began)
    before = other._branches.read().head("main")
    assert other.head("main") == before
    published = lake.publish(branch, head)
    assert published.merged and [lake.rows(name) for name in BOTH] == [[1, 2, 3], [1, 2, 3]]
    assert next(lake.catalog.history("main")).hash == published.main_after


def test_a_change_of_properties_alone_is_published(lake: IcebergLake, tmp_path: Path) -> None:
    job = WriterJob(lake, tmp_path / "jobs")
    with job.open().load_table(lake.name("one")).transaction() as transaction:
        transaction.set_properties({"owner": "ana"})
    head = job.record()
    assert lake.publish(job.branch, head).merged
    assert lake.table("one").properties["owner"] == "ana"
    assert next(lake.catalog.history("main")).merged == head


def test_a_half_is_remembered_and_its_run_is_not_tried_again(
    lake: IcebergLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch, head = written(lake, tmp_path)

    def move_the_first(publisher: Publisher, log: object, commit: LogCommit, names: list[str]) -> None:
        publisher.branches.committer.commit(
            publisher._main_changes(changes_of(log, commit, names))[:1]  # type: ignore[arg-type]
        )
        raise Crash

    with monkeypatch.context() as patched, pytest.raises(Crash):
        patched.setattr(Publisher, "_move", move_the_first)
        lake.publish(branch, head)
    for table in BOTH:
        lake.append(table, 9)
    abandon_publications(monkeypatch)
    another(lake, tmp_path).head("main")  # the half-done publish of one run blocks no other run
    for _ in range(2):
        with pytest.raises(UnexpectedWrite, match="half published"):
            lake.publish(branch, head)
        with pytest.raises(UnexpectedWrite, match="half published"):
            lake.catalog.find_conflicts(branch.name, head)
    assert sorted(map(len, (lake.rows(name) for name in BOTH))) == [3, 4]
    assert "sluice/half/" not in str(lake.catalog.list_branches())


def test_a_roll_back_that_was_overtaken_is_not_reported_as_done(lake: IcebergLake, tmp_path: Path) -> None:
    earlier = lake.catalog.table_version("main", lake.name("one"))
    branch, head = written(lake, tmp_path)
    assert lake.publish(branch, head).merged
    back = lake.branch()
    back_head = lake.catalog.commit_tables(back.name, back.base, "back", [TableCommit(lake.name("one"), earlier)])
    lake.append("one", 9)
    assert lake.publish(back, back_head).conflicts == [lake.name("one")]
    assert lake.rows("one") == [1, 2, 3, 9]


def test_an_empty_table_of_another_program_is_not_replaced(lake: IcebergLake, tmp_path: Path) -> None:
    job = WriterJob(lake, tmp_path / "jobs")
    job.open().create_table(lake.name("new"), SCHEMA).append(pa.table({"id": pa.array([1], pa.int32())}))
    head = job.record()
    theirs = lake.reader.create_table(lake.name("new"), SCHEMA, properties={"owner": "ben"})
    with pytest.raises((CatalogRefused, ServiceUnavailable, UnexpectedWrite)):
        if not lake.publish(job.branch, head).merged:
            raise CatalogRefused("taken back")
    assert lake.table("new").metadata.table_uuid == theirs.metadata.table_uuid
    assert lake.table("new").properties["owner"] == "ben"


def test_a_column_that_another_program_added_meanwhile_stays(
    lake: IcebergLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch, head = written(lake, tmp_path)

    def alter() -> None:
        with lake.table("one").transaction() as transaction:
            transaction.set_properties({"owner": "ben"})

    before_moving(monkeypatch, alter)
    published = lake.publish(branch, head)
    assert lake.table("one").properties["owner"] == "ben"
    assert published.merged is False and published.conflicts == [lake.name("one")]
    assert [lake.rows(name) for name in BOTH] == [[1, 2], [1, 2]]


def test_the_hash_of_a_commit_does_not_change_with_fields_that_have_their_defaults() -> None:
    commit = LogCommit(parent="p", message="m", at=datetime(2026, 1, 1, tzinfo=timezone.utc), properties={"a": "b"})
    assert commit.hash == LogCommit.model_validate_json(commit.model_dump_json(exclude_defaults=True)).hash
    assert commit.hash == "a820d1866a1abad0bea8e2018d0e8aee4049fa624bee0ea117d4881659ac91d5"  # in the form of the log
