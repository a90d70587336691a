"""Tables for the measurement of the audit: orders with numbers, texts, dates and a few nulls."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from devstack.stack import ROOT, Stack
from engine.job import SparkJob
from engine.spark.configuration import properties
from engine.spark.java import find_java
from lakehouse.catalog import BranchCatalog
from lakehouse.open_catalog import open_catalog
from sluice.settings import Settings

BRANCH = "wap/bench/audit"
ROWS_A_FILE = 500_000

_COLUMNS = """
    id,
    id % 100000 + (id DIV 1000000) AS customer,
    CAST(1 + abs(hash(id, 1)) % 100 AS INT) AS qty,
    (abs(hash(id, 2)) % 1000000) / 1000.0e0 AS amount,
    element_at(array('new', 'paid', 'sent', 'done', 'void'), 1 + abs(hash(id, 3)) % 5) AS status,
    concat('AB-', lpad(CAST(id % 1000000 AS STRING), 6, '0')) AS code,
    date_add(DATE'2024-01-01', CAST(abs(hash(id, 4)) % 300 AS INT)) AS created,
    date_add(DATE'2024-01-01', CAST(abs(hash(id, 4)) % 300 + id % 30 AS INT)) AS updated,
    CASE WHEN id % 50 = 0 THEN NULL ELSE concat('note ', id % 977) END AS note
"""


def configuration(settings: Settings, folder: Path) -> dict[str, str]:
    """Return the Spark configuration of Sluice's jobs, on the branch of the measurement."""
    bound = open_catalog(settings).spark_properties(settings.catalog.catalog_name, BRANCH)
    job = SparkJob(Path(), folder, BRANCH, catalog=bound, run_id="bench", attempt=1)
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**properties(settings.spark_jobs, job), **local, "spark.ui.showConsoleProgress": "false"}


def session(settings: Settings, folder: Path) -> SparkSession:
    """Start a Spark session like that of Sluice's jobs, on the branch of the measurement."""
    os.environ["JAVA_HOME"] = str(find_java())
    conf: dict[str, bool | float | int | str | None] = {**configuration(settings, folder)}
    spark = SparkSession.builder.config(map=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def build(spark: SparkSession, rows: int) -> str:
    """Create a table with `rows` rows, half a million per file, by one append; return its name."""
    name = f"bench.orders_{rows // 1000}k"
    files = max(2, rows // ROWS_A_FILE)
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT {_COLUMNS} FROM range(0, 0)")
    spark.conf.set("spark.sql.iceberg.distribution-mode", "none")
    spark.range(0, rows, 1, files).selectExpr(*_split(_COLUMNS)).writeTo(name).append()
    return name


def _split(columns: str) -> list[str]:
    return [part.strip() for part in columns.strip().split(",\n")]


def stack(home: Path) -> Stack:
    """Return a stack in a separate home, with the tools that set-up installed."""
    for tools in ("jars", "bin"):
        if (ROOT / ".sluice" / tools).exists() and not (home / tools).exists():
            (home / tools).symlink_to(ROOT / ".sluice" / tools)
    return Stack(home, {**os.environ, "SLUICE_HOME": str(home)})


def prepare(catalog: BranchCatalog) -> str:
    """Create the branch of the measurement; return its base."""
    base = catalog.initialize_main()
    catalog.create_branch(BRANCH, base)
    catalog.commit_tables(BRANCH, catalog.head(BRANCH), "Begin the measurement", create_namespaces_for=["bench.orders"])
    return base
