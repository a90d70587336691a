"""A job changes only its own catalog. The catalog that others read changes by a publish alone."""

import sqlite3
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse.catalog import TableCommit
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.iceberg_catalog.job_catalog import catalog_file
from sluice.errors import CatalogRefused, NoSuchBranch, ServiceUnavailable
from tests.harness.iceberg_lake import IcebergLake, SparkWriterJob, WriterJob, ids


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    """A JDBC catalog with the rows 1 and 2, each by an append of its own, in the table `t`."""
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", tmp_path.as_uri()
    catalog = open_iceberg("lake", "sql", uri, warehouse, {})
    return IcebergLake(catalog, SqlCatalog("lake", uri=f"{uri}?timeout=60", warehouse=warehouse), "t")


def assert_untouched(lake: IcebergLake, before: dict[str, str]) -> None:
    """Assert that other programs see each table unchanged, and can read every snapshot of it."""
    assert lake.locations() == before
    for name in before:
        metadata = lake.table(name).metadata
        for entry in metadata.metadata_log:
            assert Path(entry.metadata_file.removeprefix("file://")).exists()
        counts = [
            lake.table(name).scan(snapshot_id=each.snapshot_id).to_arrow().num_rows for each in metadata.snapshots
        ]
        assert counts == [1, 2]


PUBLISHED = {
    "append": (["INSERT INTO {t} VALUES (9)"], [1, 2, 9]),
    "another name of main": (["INSERT INTO {t}.branch_main VALUES (9)"], [1, 2, 9]),
    "replace": (["CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT 9 AS id, 'x' AS more"], [9]),
    "new columns": (["ALTER TABLE {t} ADD COLUMN more STRING", "INSERT INTO {t} VALUES (9, 'x')"], [1, 2, 9]),
    "columns removed and added": (
        ["ALTER TABLE {t} ADD COLUMN a INT", "ALTER TABLE {t} DROP COLUMN a", "INSERT INTO {t} VALUES (9)"],
        [1, 2, 9],
    ),
    "new partitions": (["ALTER TABLE {t} ADD PARTITION FIELD id", "INSERT INTO {t} VALUES (9)"], [1, 2, 9]),
    "a property": (["ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')"], [1, 2]),
    "a branch and fast_forward": (
        [
            "ALTER TABLE {t} CREATE BRANCH other",
            "INSERT INTO {t}.branch_other VALUES (9)",
            "CALL {c}.system.fast_forward('{n}.t', 'main', 'other')",
        ],
        [1, 2, 9],
    ),
    "rows deleted": (["DELETE FROM {t} WHERE id = 1"], [2]),
    "rows deleted by position": (
        ["ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')", "DELETE FROM {t} WHERE id = 1"],
        [2],
    ),
    "dropped": (["DROP TABLE {t}"], []),
}


@pytest.mark.parametrize("what", PUBLISHED)
def test_main_gets_exactly_what_a_job_made_and_by_the_publish_alone(
    what: str, lake: IcebergLake, tmp_path: Path, spark: SparkSession
) -> None:
    statements, rows = PUBLISHED[what]
    before = lake.locations()
    job = SparkWriterJob(lake, tmp_path, spark)
    job.sql(*statements)
    assert_untouched(lake, before)
    head = job.record()
    assert job.record() == head  # a repeat
    assert_untouched(lake, before)
    audited = lake.catalog.table_version(job.branch.name, lake.name("t"), head)
    publication = lake.publish(job.branch, head)
    assert publication.merged and lake.rows("t") == rows
    assert lake.catalog.table_version("main", lake.name("t")) == audited
    assert lake.catalog.head("main") == publication.main_after  # no change appears to be from another program
    assert lake.snapshot("t") == (audited.snapshot_id if audited else None)
    if audited:
        made = job.open().load_table(lake.name("t")).metadata
        assert lake.table("t").schema() == made.schema()
        assert lake.table("t").spec() == made.spec()
        assert "gc.enabled" not in lake.table("t").properties
        again = SparkWriterJob(lake, tmp_path, spark)
        again.sql("INSERT INTO {t} SELECT * FROM {t}")
        again.record()
        assert lake.publish(again.branch).merged and lake.rows("t") == sorted(rows * 2)


REFUSED = {
    "files of old snapshots": ["CALL {c}.system.expire_snapshots('{n}.t', TIMESTAMP '2100-01-01 00:00:00', 1)"],
    "files that nothing needs": ["CALL {c}.system.remove_orphan_files('{n}.t')"],
    "files of a dropped table": ["DROP TABLE {t} PURGE"],
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_job_cannot_delete_files(what: str, lake: IcebergLake, tmp_path: Path, spark: SparkSession) -> None:
    job = SparkWriterJob(lake, tmp_path, spark)
    job.sql("INSERT OVERWRITE {t} VALUES (9)")
    before = lake.locations()
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?i)gc is disabled|gc.enabled"):
        job.sql(*REFUSED[what])
    assert_untouched(lake, before)


def test_metadata_files_outlive_a_job_that_deletes_its_own(lake: IcebergLake, tmp_path: Path) -> None:
    job, before = WriterJob(lake, tmp_path), lake.locations()
    needed = {*before.values(), *(each.metadata_file for each in lake.table("t").metadata.metadata_log)}
    unsafe = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    job.open().load_table(lake.name("t")).transaction().set_properties(unsafe).commit_transaction()
    log = job.open().load_table(lake.name("t")).metadata.metadata_log
    assert not needed & {each.metadata_file for each in log}  # only files in this log would be deleted
    for number in range(3):
        job.append("t", number)
    assert_untouched(lake, before)


def test_a_branch_inside_the_jobs_catalog_is_not_published(
    lake: IcebergLake, tmp_path: Path, spark: SparkSession
) -> None:
    job = SparkWriterJob(lake, tmp_path, spark)
    job.sql("ALTER TABLE {t} CREATE BRANCH other", "INSERT INTO {t}.branch_other VALUES (9)")
    assert job.record() == job.branch.base
    job.sql("INSERT INTO {t} VALUES (3)")
    job.record()
    assert lake.publish(job.branch).merged and lake.rows("t") == [1, 2, 3]
    assert list(lake.table("t").refs()) == ["main"]


def test_a_renamed_table_is_one_dropped_and_one_created(lake: IcebergLake, tmp_path: Path, spark: SparkSession) -> None:
    job, before = SparkWriterJob(lake, tmp_path, spark), lake.locations()
    job.sql("ALTER TABLE {t} RENAME TO {n}.u")
    head = job.record()
    assert_untouched(lake, before)
    diffs = {diff.name: diff.after is None for diff in lake.catalog.diff(job.branch.base, job.branch.name, head)}
    assert diffs == {lake.name("t"): True, lake.name("u"): False}


def test_a_table_of_another_identity_is_refused(lake: IcebergLake, tmp_path: Path, spark: SparkSession) -> None:
    job = SparkWriterJob(lake, tmp_path, spark)
    job.sql("DROP TABLE {t}", "CREATE TABLE {t} (id INT) USING iceberg", "INSERT INTO {t} VALUES (9)")
    with pytest.raises(CatalogRefused, match="CREATE OR REPLACE"):
        job.record()
    assert lake.catalog.head(job.branch.name) == job.branch.base and lake.rows("t") == [1, 2]


def test_new_tables_and_namespaces_are_on_the_branch_alone(
    lake: IcebergLake, tmp_path: Path, spark: SparkSession
) -> None:
    job, namespaces = SparkWriterJob(lake, tmp_path, spark), lake.reader.list_namespaces()
    job.sql("CREATE NAMESPACE {c}.{n}2", "CREATE TABLE {c}.{n}2.u USING iceberg AS SELECT 7 AS id")
    job.sql("CREATE NAMESPACE {c}.{n}3")
    job.record()
    assert lake.reader.list_namespaces() == namespaces
    assert lake.publish(job.branch).merged
    assert lake.reader.load_table(f"{lake.namespace}2.u").scan().to_arrow().to_pydict() == {"id": [7]}


def test_a_table_that_was_rolled_back_is_created_again(lake: IcebergLake, tmp_path: Path, spark: SparkSession) -> None:
    for column in ("id", "other"):
        job = SparkWriterJob(lake, tmp_path, spark)
        job.sql(f"CREATE TABLE {{c}}.{{n}}.u USING iceberg AS SELECT 7 AS {column}")
        job.record()
        assert lake.publish(job.branch).merged
        assert lake.table("u").scan().to_arrow().to_pydict() == {column: [7]}
        head, version = lake.catalog.head("main"), lake.catalog.table_version("main", lake.name("u"))
        assert lake.catalog.head("main") == head and version and version.snapshot_id == lake.snapshot("u")
        back = SparkWriterJob(lake, tmp_path, spark)
        back.sql("DROP TABLE {c}.{n}.u")
        back.record()
        assert lake.publish(back.branch).merged and lake.snapshot("u") is None


def test_columns_after_a_roll_back_get_numbers_of_their_own(
    lake: IcebergLake, tmp_path: Path, spark: SparkSession
) -> None:
    """A job that began at the metadata file from before the roll-back would assign column ids already in use."""
    original = lake.catalog.table_version("main", lake.name("t"))
    for column in ("first", "second"):
        job = SparkWriterJob(lake, tmp_path, spark)
        job.sql(f"ALTER TABLE {{t}} ADD COLUMN {column} INT", "INSERT INTO {t} VALUES (3, 4)")
        job.record()
        assert lake.publish(job.branch).merged
        assert lake.table("t").schema().column_names == ["id", column] and lake.rows("t") == [1, 2, 3]
        back = lake.branch()
        lake.catalog.commit_tables(back.name, back.base, "back", [TableCommit(lake.name("t"), original)])
        assert lake.publish(back).merged and lake.rows("t") == [1, 2]


DELETES = ["ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"]


@pytest.mark.parametrize(
    ("statements", "rows"),
    [
        ([*DELETES, "DELETE FROM {t} WHERE id = 1"], [2]),
        ([*DELETES, "INSERT INTO {t} VALUES (9), (10)", "DELETE FROM {t} WHERE id = 9"], [1, 2, 10]),
        ([*DELETES, "DELETE FROM {t} WHERE id = 1", "INSERT INTO {t} VALUES (1)"], [1, 2]),
    ],
)
def test_deleted_rows_stay_deleted_where_another_branch_used_the_numbers(
    statements: list[str], rows: list[int], lake: IcebergLake, tmp_path: Path, spark: SparkSession
) -> None:
    job = SparkWriterJob(lake, tmp_path, spark)
    job.sql(*statements)
    job.record()
    snapshot = lake.snapshot("t")
    assert snapshot
    lake.table("t").manage_snapshots().create_branch(snapshot, "other").commit()
    for number in range(5):
        lake.table("t").append(ids(100 + number), branch="other")
    assert lake.publish(job.branch).merged and lake.rows("t") == rows
    reader = SparkWriterJob(lake, tmp_path, spark)
    assert sorted(row.id for row in reader.session.table(f"{reader.name}.{lake.name('t')}").collect()) == rows


# Recorded twice, late, or by somebody else


def test_a_repeat_that_comes_late_does_not_undo_a_later_commit(lake: IcebergLake, tmp_path: Path) -> None:
    first = WriterJob(lake, tmp_path)
    first.append("t", 3)
    first.record()
    second = WriterJob(lake, tmp_path, first.branch)
    second.append("t", 4)
    head = second.record()
    assert first.record() == head
    assert lake.publish(first.branch).merged and lake.rows("t") == [1, 2, 3, 4]


def test_a_repeat_of_a_drop_is_one_commit(lake: IcebergLake, tmp_path: Path) -> None:
    job = WriterJob(lake, tmp_path)
    job.open().drop_table(lake.name("t"))
    assert job.record() == job.record()


def test_namespaces_alone_are_recorded(lake: IcebergLake, tmp_path: Path) -> None:
    job = WriterJob(lake, tmp_path)
    job.open().create_namespace("fresh")
    head = job.record()
    namespaces = lake.catalog.diff_namespaces(job.branch.base, job.branch.name, head)
    assert [each.elements for each in namespaces] == [("fresh",)] and job.record() == head


def test_what_a_zombie_writes_after_the_record_is_not_published(lake: IcebergLake, tmp_path: Path) -> None:
    job = WriterJob(lake, tmp_path)
    job.append("t", 3)
    head = job.record()
    job.append("t", 666)
    with pytest.raises(ServiceUnavailable, match=r"another commit changed .* meanwhile"):
        job.record()
    assert lake.catalog.head(job.branch.name) == head
    assert lake.publish(job.branch, head).merged and lake.rows("t") == [1, 2, 3]
    job.append("t", 667)
    assert lake.rows("t") == [1, 2, 3]


def test_what_a_job_wrote_is_not_recorded_on_a_branch_that_was_deleted_or_made_again(
    lake: IcebergLake, tmp_path: Path
) -> None:
    job = WriterJob(lake, tmp_path)
    job.append("t", 3)
    lake.catalog.delete_branch(job.branch.name)
    with pytest.raises(NoSuchBranch):
        job.record()
    lake.append("t", 5)
    other = lake.catalog.head("main")
    first = lake.catalog.history("main")
    assert next(first).hash == other
    lake.catalog.create_branch(job.branch.name, lake.catalog.create_orphan_branch("wap/root"))
    with pytest.raises(NoSuchBranch):
        job.record()
    assert lake.rows("t") == [1, 2, 5]


@pytest.mark.parametrize("what", ["no database", "a file that is not there", "a file that is not metadata"])
def test_what_cannot_be_read_is_refused(what: str, lake: IcebergLake, tmp_path: Path) -> None:
    job = WriterJob(lake, tmp_path)
    file = catalog_file(job.folder, job.name)
    if what == "no database":
        file.write_text("so much for the catalog" * 100)
    else:
        (tmp_path / "other.json").write_text('{"password": "hunter2"}')
        location = (tmp_path / ("absent.json" if "not there" in what else "other.json")).as_uri()
        with sqlite3.connect(file) as database:
            database.execute("UPDATE iceberg_tables SET metadata_location = ?", (location,))
        database.close()
    with pytest.raises(CatalogRefused, match="cannot be read") as refused:
        job.record()
    assert "hunter2" not in str(refused.value)
    assert lake.catalog.head(job.branch.name) == job.branch.base
