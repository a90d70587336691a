"""No statement of a job deletes a file that main or another branch needs, whatever the table's properties."""

import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.table_state import TableState, load_table
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.warm_branch import BRANCH

UNSAFE = (
    "'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '1', "
    "'gc.enabled' = 'true'"
)


class Protected:
    """A table with a version that another branch needs."""

    def __init__(self, spark: SparkSession, catalog: BranchCatalog, name: str, properties: str = "") -> None:
        self.spark, self.catalog, self.name = spark, catalog, name
        self.other = f"wap/protects/{name}"
        catalog.delete_branch(self.other)
        spark.sql(f"CREATE TABLE {name} (id INT) TBLPROPERTIES ('format-version' = '2')")
        for number in range(3):
            spark.sql(f"INSERT INTO {name} VALUES ({number})")
        if properties:
            spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({properties})")
        catalog.copy_branch(self.other, BRANCH, catalog.head(BRANCH))
        self.needed = self._version(self.other)

    def _version(self, branch: str) -> TableVersion:
        version = self.catalog.table_version(branch, self.name)
        assert version
        return version

    def change(self, *statements: str) -> None:
        """Run statements. Those that delete files may fail after their commit."""
        catalog = self.spark.conf.get("spark.sql.defaultCatalog") or ""
        for statement in statements:
            deletes = statement in DELETING
            if deletes:
                self._age_files()
            try:
                self.spark.sql(statement.replace("{t}", self.name).replace("{c}", catalog)).collect()
            except (PySparkException, Py4JJavaError):
                if not deletes:
                    raise

    def _age_files(self) -> None:
        """Make all files of the table ten days old: Iceberg keeps younger ones that no snapshot needs."""
        folder = Path(self.needed.metadata_location.removeprefix("file:").replace("//", "/")).parent.parent
        past = time.time() - 10 * 86400
        for file in folder.rglob("*"):
            os.utime(file, (past, past))

    @property
    def snapshots(self) -> int:
        """The number of the table's snapshots on the job's branch; 0 if the table was dropped."""
        version = self.catalog.table_version(BRANCH, self.name)
        return len(load_table(version, {}).snapshots()) if version else 0

    @property
    def properties(self) -> dict[str, str]:
        return dict(load_table(self._version(BRANCH), {}).properties)

    def assert_whole(self) -> None:
        """Assert that the other branch's table is readable, and that every metadata file before it exists."""
        table = load_table(self.needed, {})
        assert Path(self.needed.metadata_location.removeprefix("file:").replace("//", "/")).exists()
        assert all(
            Path(log.metadata_file.removeprefix("file:").replace("//", "/")).exists()
            for log in table.metadata.metadata_log
        )
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
        assert TableState.load(self.needed, None, {}).total_rows == 3

    def close(self) -> None:
        self.catalog.delete_branch(self.other)


Protect = Callable[..., Protected]


@pytest.fixture
def protect(spark: SparkSession, stack: dict[str, str]) -> Protect:
    catalog = open_catalog(read_settings(stack))
    return lambda name, properties="": Protected(spark, catalog, name, properties)


MORE = ("INSERT INTO {t} VALUES (7)", "INSERT INTO {t} VALUES (8)", "INSERT OVERWRITE {t} VALUES (9)")
EXPIRE = "CALL {c}.system.expire_snapshots(table => '{t}', older_than => TIMESTAMP '2999-01-01', retain_last => 1)"
FIVE_DAYS_AGO = f"{datetime.now(timezone.utc) - timedelta(days=5):%Y-%m-%d %H:%M:%S}"
ORPHANS = f"CALL {{c}}.system.remove_orphan_files(table => '{{t}}', older_than => TIMESTAMP '{FIVE_DAYS_AGO}')"
PURGE = "DROP TABLE {t} PURGE"
DELETING = (EXPIRE, ORPHANS, PURGE)


slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "before", "statements", "snapshots"),
    [
        ("altered", "", (MORE[0], f"ALTER TABLE {{t}} SET TBLPROPERTIES ({UNSAFE})", *MORE), 7),
        slow("imported", UNSAFE, MORE, 6),
        slow("replaced", "", (f"CREATE OR REPLACE TABLE {{t}} TBLPROPERTIES ({UNSAFE}) AS SELECT 1 AS id", *MORE), 7),
        slow("expired", "", (*MORE, "ALTER TABLE {t} SET TBLPROPERTIES ('gc.enabled' = 'true')", EXPIRE), 1),
        slow("rewritten", UNSAFE, (*MORE[:2], "CALL {c}.system.rewrite_manifests('{t}')", MORE[2], EXPIRE), 1),
        slow("cleaned", UNSAFE, (*MORE, EXPIRE, ORPHANS), 1),
        ("purged", UNSAFE, (*MORE, PURGE), 0),
    ],
)
def test_what_another_branch_needs_stays(
    protect: Protect, name: str, before: str, statements: tuple[str, ...], snapshots: int
) -> None:
    table = protect(f"i.protected_{name}", before)
    try:
        table.change(*statements)
        assert table.snapshots == snapshots  # the statement took effect, but deleted no file
        table.assert_whole()
    finally:
        table.close()


def test_a_table_that_a_job_creates_has_safe_properties(protect: Protect) -> None:
    table = protect("i.protected_created")
    try:
        table.change(f"CREATE OR REPLACE TABLE {{t}} TBLPROPERTIES ({UNSAFE}) AS SELECT 1 AS id")
        kept = table.properties
        assert (kept["gc.enabled"], kept["write.metadata.delete-after-commit.enabled"]) == ("false", "false")
    finally:
        table.close()
