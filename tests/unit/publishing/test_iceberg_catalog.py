"""Commits of the catalog `iceberg` that need no server: sequence numbers, layouts, and answers to a transaction."""

from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType

from lakehouse.iceberg_catalog.errors import translate_catalog_errors
from lakehouse.iceberg_catalog.metadata_changes import move_main
from lakehouse.iceberg_catalog.sequence_numbers import renumbered
from lakehouse.iceberg_catalog.sql_committer import SqlCommitter
from lakehouse.iceberg_catalog.transactions import CatalogTable, CommitConflict, RestCommitter, TableChange
from lakehouse.iceberg_catalog.versions import layout_of
from sluice.errors import BadEnvironment, CatalogRefused, ServiceUnavailable
from tests.harness.iceberg_lake import SCHEMA, ids

SMALL = {"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "true"}


class TwoCatalogs:
    """A table in a catalog and in a job's catalog, which both continue from the same metadata file."""

    def __init__(self, folder: Path, version: str = "2", **properties: str) -> None:
        self.catalogs = []
        for name in ("main", "job"):
            (folder / name).mkdir()
            uri = f"sqlite:///{folder}/{name}/catalog.db"
            self.catalogs.append(SqlCatalog(name, uri=uri, warehouse=folder.as_uri()))
            self.catalogs[-1].create_namespace("a")
        main, job = self.catalogs
        table = main.create_table("a.t", SCHEMA, properties={"format-version": version, **properties})
        table.append(ids(1))
        table.append(ids(2))
        job.register_table("a.t", main.load_table("a.t").metadata_location)

    @property
    def main(self) -> Table:
        """The table in the catalog that others read."""
        return self.catalogs[0].load_table("a.t")

    @property
    def job(self) -> Table:
        """The table in the catalog of the job."""
        return self.catalogs[1].load_table("a.t")

    @property
    def loaded(self) -> CatalogTable:
        """The table in the form that changes expect."""
        return CatalogTable(("a", "t"), self.main.metadata, self.main.metadata_location)

    def change(self) -> TableChange:
        """Return the change that sets main to the job's version."""
        target, present = self.job.metadata, self.main.current_snapshot()
        assert present
        return move_main(self.loaded, present.snapshot_id, target, target.current_snapshot_id, {})

    def publish(self) -> None:
        """Set main to the job's version of the table."""
        SqlCommitter(self.catalogs[0]).commit([self.change()])

    def other_branch(self, *numbers: int) -> None:
        """Append on another branch of the table, which uses up sequence numbers."""
        snapshot = self.main.current_snapshot()
        assert snapshot
        if "other" not in self.main.refs():
            self.main.manage_snapshots().create_branch(snapshot.snapshot_id, "other").commit()
        self.main.append(ids(*numbers), branch="other")

    def rows(self) -> list[int]:
        """Return the rows on main, as PyIceberg reads them."""
        return sorted(self.main.scan().to_arrow()["id"].to_pylist())


def by_duckdb(table: Table) -> list[int]:
    """Return the rows of a table, as DuckDB reads its data files and deletes according to the scan's plan."""
    files = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    return sorted(row[0] for row in duckdb.read_parquet(files).fetchall())


@pytest.fixture
def tables(tmp_path: Path) -> TwoCatalogs:
    return TwoCatalogs(tmp_path)


# Sequence numbers


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("merged", [False, True], ids=["manifests kept", "manifests merged"])
def test_appends_beside_another_branch_are_published_after_it(version: str, merged: bool, tmp_path: Path) -> None:
    tables = TwoCatalogs(tmp_path, version, **(SMALL if merged else {}))
    tables.job.append(ids(3))
    tables.job.append(ids(4))
    for number in range(5, 8):
        tables.other_branch(number)
    used = max(each.sequence_number or 0 for each in tables.main.metadata.snapshots)
    tables.publish()
    assert tables.rows() == by_duckdb(tables.main) == [1, 2, 3, 4]
    assert sorted(tables.main.scan().use_ref("other").to_arrow()["id"].to_pylist()) == [1, 2, 5, 6, 7]
    newest = tables.main.current_snapshot()
    assert newest and newest.snapshot_id == tables.job.metadata.current_snapshot_id
    if version == "2":
        numbers = [each.sequence_number for each in tables.main.metadata.snapshots]
        assert newest.sequence_number == used + 2 and len(set(numbers)) == len(numbers)
    tables.main.append(ids(8))
    assert tables.rows() == [1, 2, 3, 4, 8]


def test_numbers_that_are_free_stay(tables: TwoCatalogs) -> None:
    tables.job.append(ids(3))
    made = tables.job.current_snapshot()
    assert made and renumbered(tables.loaded, [made], {}) == [made]
    assert renumbered(tables.loaded, [], {}) == []


def test_an_overwrite_beside_another_branch(tables: TwoCatalogs) -> None:
    tables.job.overwrite(ids(9))
    tables.job.append(ids(10))
    tables.other_branch(5)
    tables.publish()
    assert tables.rows() == by_duckdb(tables.main) == [9, 10]


def test_the_files_of_the_job_stay_as_they_are(tables: TwoCatalogs) -> None:
    """New manifest lists are written: the job's lists still describe the audited state."""
    tables.job.append(ids(3))
    tables.other_branch(5)
    made = tables.job.current_snapshot()
    assert made
    before = Path(made.manifest_list.removeprefix("file://")).read_bytes()
    tables.publish()
    moved = tables.main.current_snapshot()
    assert moved and moved.manifest_list != made.manifest_list
    assert Path(made.manifest_list.removeprefix("file://")).read_bytes() == before
    assert sorted(tables.job.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_numbers_of_format_3_are_not_moved(tables: TwoCatalogs) -> None:
    tables.job.append(ids(3))
    tables.other_branch(5)
    made, loaded = tables.job.current_snapshot(), tables.loaded
    assert made
    newer = loaded.metadata.model_copy(update={"format_version": 3})
    with pytest.raises(CatalogRefused, match="run the pipeline again"):
        renumbered(CatalogTable(loaded.identifier, newer, loaded.location), [made], {})


# Parts of a table besides its rows that readers see


def test_columns_partitions_and_properties_are_published(tables: TwoCatalogs) -> None:
    with tables.job.update_schema() as schema:
        schema.add_column("more", StringType())
    with tables.job.update_spec() as spec:
        spec.add_field("id", IdentityTransform())
    tables.job.transaction().set_properties({"a": "b", "gc.enabled": "false"}).commit_transaction()
    tables.job.append(pa.table({"id": pa.array([3], pa.int32()), "more": ["x"]}))
    tables.publish()
    main, job = tables.main.metadata, tables.job.metadata
    assert (main.schema(), main.spec()) == (job.schema(), job.spec())
    assert (main.properties["a"], main.properties.get("gc.enabled")) == ("b", None)
    assert layout_of(main) == layout_of(job) and tables.rows() == [1, 2, 3]


def test_a_removed_property_is_removed_on_main(tmp_path: Path) -> None:
    tables = TwoCatalogs(tmp_path, "2", a="b")
    tables.job.transaction().remove_properties("a").commit_transaction()
    assert layout_of(tables.job.metadata) != layout_of(tables.main.metadata)
    tables.publish()
    assert "a" not in tables.main.metadata.properties


@pytest.mark.parametrize(
    ("before", "after", "published"), [("true", "false", "false"), ("true", "true", "true"), ("false", None, "false")]
)
def test_a_property_that_deletes_files_is_made_safe(
    before: str, after: str | None, published: str, tmp_path: Path
) -> None:
    """A table on main may have it, and a run sets it to false. A job that does not see it changes nothing."""
    tables = TwoCatalogs(tmp_path, "2", **{"gc.enabled": before})
    transaction = tables.job.transaction()
    if after is None:
        transaction.remove_properties("gc.enabled").commit_transaction()
    else:
        transaction.set_properties({"gc.enabled": after}).commit_transaction()
    tables.publish()
    assert tables.main.metadata.properties["gc.enabled"] == published
    is_same = layout_of(tables.main.metadata) == layout_of(tables.job.metadata)
    assert is_same


def test_a_table_that_got_another_schema_under_the_same_number_is_a_conflict(tables: TwoCatalogs) -> None:
    for table, column in ((tables.job, "one"), (tables.main, "other")):
        with table.update_schema() as schema:
            schema.add_column(column, StringType())
    with pytest.raises(CommitConflict, match="schema"):
        tables.change()


def test_main_that_moved_is_a_conflict_and_leaves_no_file(tables: TwoCatalogs) -> None:
    tables.job.append(ids(3))
    change = tables.change()
    tables.main.append(ids(7))
    folder = Path(tables.main.metadata_location.removeprefix("file://")).parent
    files = {file.name for file in folder.glob("*.metadata.json")}
    with pytest.raises(CommitConflict, match="changed meanwhile"):
        SqlCommitter(tables.catalogs[0]).commit([change])
    assert tables.rows() == [1, 2, 7] and {file.name for file in folder.glob("*.metadata.json")} == files


def test_a_removed_table_has_no_main(tables: TwoCatalogs) -> None:
    present = tables.main.current_snapshot()
    assert present
    SqlCommitter(tables.catalogs[0]).commit([move_main(tables.loaded, present.snapshot_id, None, None, {})])
    assert tables.main.current_snapshot() is None


class Answering:
    """A session with one fixed answer."""

    def __init__(self, status: int, text: str) -> None:
        self._answer = requests.Response()
        self._answer.status_code, self._answer._content = status, text.encode()

    def post(self, *_: Any, **__: Any) -> requests.Response:
        return self._answer


class Answered:
    """A REST catalog with the parts that transactions use."""

    def __init__(self, status: int, text: str = "") -> None:
        self._session = Answering(status, text)
        self._refresh_token = lambda: None

    def url(self, path: str) -> str:
        return path


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (204, "", None),
        (400, "Cannot add snapshot with sequence number 3 older than", CommitConflict),
        (400, "no such field", CatalogRefused),
        (401, "", BadEnvironment),
        (403, "", BadEnvironment),
        (404, "no such table", CommitConflict),
        (409, "", CommitConflict),
        (429, "", ServiceUnavailable),
        (500, "", ServiceUnavailable),
        (503, "", ServiceUnavailable),
    ],
)
def test_the_answers_to_a_transaction(
    status: int, text: str, expected: type[Exception] | None, tables: TwoCatalogs
) -> None:
    tables.job.append(ids(3))
    committer = RestCommitter(cast(RestCatalog, Answered(status, text)))
    try:
        with translate_catalog_errors():
            try:
                committer.commit([tables.change()] * 2)
            except CommitConflict:
                assert expected is CommitConflict
                return
    except Exception as error:
        assert type(error) is expected
        return
    assert expected is None
