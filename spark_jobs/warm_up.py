"""A job that does a little of everything, so that a class-data archive made meanwhile holds what jobs need.

    spark-submit rehearse.py FOLDER

Its catalog `rehearsal` keeps tables in the folder. The other, `nowhere`, is Nessie's, where nobody answers.
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


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Write as the built-in job does, read as the audit does, and ask Nessie in vain."""
    csv, parquet = folder / "rows.csv", folder / "parquet"
    csv.write_text("id,kind,day\n" + "".join(f"{i},k{i % 7},2026-01-0{1 + i % 3}\n" for i in range(200)))
    spark.read.option("header", True).schema("id int, kind string, day date").csv(str(csv)).write.parquet(str(parquet))
    for number, mode in enumerate(_MODES):
        write = Write.model_validate({"source": {"path": str(csv)}, "mode": mode})
        ingest(spark, _spec(write, [str(csv)], Table(partition_by=["kind"] if number == 2 else [])))
    rows = spark.table(f"rehearsal.{_TABLE}")
    rows.groupBy("kind").agg(F.count_distinct("id"), F.avg("id"), F.max("day")).orderBy("kind").collect()
    new = spark.read.schema(rows.schema).parquet(str(parquet)).filter("kind is not null")
    new.createOrReplaceTempView("new_rows")
    statements = [
        f"MERGE INTO rehearsal.{_TABLE} old USING new_rows new ON old.id = new.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        f"DELETE FROM rehearsal.{_TABLE} WHERE id % 5 = 0",
        f"SELECT * FROM rehearsal.{_TABLE}.files",
    ]
    for statement in statements:
        spark.sql(statement).collect()
    try:
        spark.sql("SHOW TABLES IN nowhere.t").collect()
    except (PySparkException, OSError):
        return  # as expected: what it takes to ask is loaded now
    except Exception as error:  # py4j raises what it does not know as its own
        print(f"as expected, nobody answers: {type(error).__name__}")


def _spec(write: Write, files: list[str], table: Table) -> IngestSpec:
    return IngestSpec(
        spark_catalog="rehearsal", write=write, files=files, base_path=None, tables={_TABLE: table}, answer=""
    )


if __name__ == "__main__":
    rehearse(SparkSession.builder.getOrCreate(), Path(sys.argv[1]))
