"""The warm-up job, which uses a little of everything so that the JVM loads the classes that jobs need.

    spark-submit warm_up.py FOLDER

It runs after set-up, to create a class-data archive. The worker runs it on a Spark Connect server that it started.
The catalog `warm_up` keeps tables in the folder. The catalog `unreachable` is of the kind that jobs use, but has no
server.
"""

import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sluice.contracts.spark_jobs import IngestSpec
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from spark_jobs.ingest import ingest

_TABLE = "t.rows"
_MODES = ("append", "append", "overwrite")


def warm_up(spark: SparkSession, folder: Path) -> None:
    """Write like the built-in job, read like the audit, and try to reach the server of a catalog."""
    csv, parquet = folder / "rows.csv", folder / "parquet"
    csv.write_text("id,kind,day\n" + "".join(f"{i},k{i % 7},2026-01-0{1 + i % 3}\n" for i in range(200)))
    spark.read.option("header", True).schema("id int, kind string, day date").csv(str(csv)).write.parquet(str(parquet))
    for number, mode in enumerate(_MODES):
        write = Write.model_validate({"source": {"path": str(csv)}, "mode": mode})
        ingest(spark, _spec(write, [str(csv)], Table(partition_by=["kind"] if number == 2 else [])))
    rows = spark.table(f"warm_up.{_TABLE}")
    rows.groupBy("kind").agg(F.count_distinct("id"), F.avg("id"), F.max("day")).orderBy("kind").collect()
    new = spark.read.schema(rows.schema).parquet(str(parquet)).filter("kind is not null")
    new.createOrReplaceTempView("new_rows")
    statements = [
        f"MERGE INTO warm_up.{_TABLE} old USING new_rows new ON old.id = new.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        f"DELETE FROM warm_up.{_TABLE} WHERE id % 5 = 0",
        f"SELECT * FROM warm_up.{_TABLE}.files",
    ]
    for statement in statements:
        spark.sql(statement).collect()
    try:
        spark.sql("SHOW TABLES IN unreachable.t").collect()
    except (PySparkException, OSError):
        return  # expected: the classes of the catalog's client are loaded now
    except Exception as error:  # py4j raises other errors than PySparkException
        print(f"as expected, no server answers: {type(error).__name__}")


def _spec(write: Write, files: list[str], table: Table) -> IngestSpec:
    return IngestSpec(
        spark_catalog="warm_up", write=write, files=files, base_path=None, tables={_TABLE: table}, answer=""
    )


if __name__ == "__main__":
    warm_up(SparkSession.builder.getOrCreate(), Path(sys.argv[1]))
