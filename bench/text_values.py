"""Read a CSV file of ten rows and one of a million by Spark's reader, and exactly as written.

Also guess their types, by Spark's inference and by Sluice's rules.

Also read a file of 36 columns exactly, with an expression for each column and with one for each type.

    python -m bench.text_values [--rows 1000000] [--rounds 3]

Prints the seconds of each round, and the ratio of the medians. Spark runs on two cores and writes nothing.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.source_files.guessed_types import guess_types
from spark_jobs.source_files.load_files import Reading, load, load_plainly
from spark_jobs.values import many_columns

_SCHEMA = "id INT, a DOUBLE, b DOUBLE, c DECIMAL(10,2), day DATE, at TIMESTAMP, name STRING, kind STRING"
_OPTIONS = {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "escape": '"'}
_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_FEW = 10
_WIDE = {"INT": "7", "DOUBLE": "1.5", "TIMESTAMP": "2026-01-31 10:30:00"}
"""The types of the wide file, each with its value."""


def _write(path: Path, rows: int) -> None:
    draw = random.Random(1)
    with path.open("w") as file:
        file.write("id,a,b,c,day,at,name,kind\n")
        for number in range(rows):
            day = f"2024-01-{number % 28 + 1:02}"
            moment = f"{day} 10:{number % 60:02}:{number % 59:02}.123"
            numbers = f"{draw.random() * 1000!r},{number / 4},{draw.randrange(10**6) / 100}"
            file.write(f"{number},{numbers},{day},{moment},name {number},{draw.choice('abc')}\n")


def _write_wide(path: Path, rows: int) -> None:
    row = ",".join(each for each in _WIDE.values() for _ in range(12))
    path.write_text("".join(f"{row}\n" for _ in range(rows)))


def _compare(
    what: str,
    rounds: int,
    first: Callable[[], object],
    second: Callable[[], object],
    names: tuple[str, str] = ("Spark's reader", "exactly"),
) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds + 1):
        for name, action in zip(seconds, (first, second), strict=True):
            begun = time.perf_counter()
            action()
            seconds[name].append(time.perf_counter() - begun)
    for name, each in seconds.items():
        print(f"{what}, {name}: {', '.join(f'{second:.2f}' for second in each[1:])} s")
    earlier, later = (statistics.median(each[1:]) for each in seconds.values())
    print(f"{what}: {later / earlier:.2f} times")


def _consume(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    spark = SparkSession.builder.master("local[2]").config(map=dict(_CONF)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        for rows in (_FEW, given.rows):
            _compare_types(spark, Path(folder, f"{rows}.csv"), rows, given.rounds)
        for rows in (1000, given.rows // 10):
            _compare_wide(spark, Path(folder, "wide.csv"), rows, given.rounds)
    spark.stop()


def _compare_types(spark: SparkSession, file: Path, rows: int, rounds: int) -> None:
    _write(file, rows)
    schema = StructType.fromDDL(_SCHEMA)
    assert isinstance(schema, StructType)
    as_text = StructType([StructField(field.name, StringType()) for field in schema])
    files, inferring = [str(file)], {**_OPTIONS, "inferSchema": "true"}
    _compare(
        f"read {rows:,} rows",
        rounds,
        lambda: _consume(load_plainly(spark, "csv", _OPTIONS, files, schema)),
        lambda: _consume(load(spark, Reading("csv", _OPTIONS, [], schema), files, {})),
    )
    columns = {field.name for field in schema}
    _compare(
        f"read {rows:,} rows with the types of a table",
        rounds,
        lambda: _consume(load_plainly(spark, "csv", _OPTIONS, files, schema)),
        lambda: _consume(load(spark, Reading("csv", _OPTIONS, [], schema, of_table=columns), files, {})),
    )
    _compare(
        f"guess types of {rows:,} rows",
        rounds,
        lambda: load_plainly(spark, "csv", inferring, files, None).schema,
        lambda: guess_types([load_plainly(spark, "csv", _OPTIONS, files, as_text)], schema.names),
    )


def _compare_wide(spark: SparkSession, file: Path, rows: int, rounds: int) -> None:
    _write_wide(file, rows)
    schema = StructType.fromDDL(", ".join(f"{type}_{number} {type}" for type in _WIDE for number in range(12)))
    assert isinstance(schema, StructType)
    reading = Reading("csv", {**_OPTIONS, "header": "false"}, [], schema)

    def by_type() -> None:
        _consume(load(spark, reading, [str(file)], {}))

    def by_column() -> None:
        with mock.patch.object(many_columns, "_MANY", len(schema) + 1):
            by_type()

    names = ("an expression for each column", "for each type")
    _compare(f"36 columns, {rows:,} rows", rounds, by_column, by_type, names)


if __name__ == "__main__":
    main()
