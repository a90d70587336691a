"""Read a source so that no row and no value is dropped silently: what cannot be read fails the job."""

import math
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import suggestion
from sluice.pipeline.source import Source

_MIN_TASK_BYTES = 8 * 2**20
"""How much of the input a task reads at least. Each task writes a file of its own: less would make tiny files."""


def read_source(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> DataFrame:
    """Read the files of a source.

    Args:
        target: the schema of the table, if it exists and there is no transform: text is then read as
            the table's types, and a value of another type fails the read.

    Raises:
        InvalidInput: the columns of the files are not those of the table.
    """
    source = spec.write.source
    assert source is not None
    format = source.reader_format()
    options = {"mode": "FAILFAST", **_default_options(format), **source.options}
    if spec.base_path:
        options.setdefault("basePath", spec.base_path)
    if format == "json" and "multiLine" not in options and _begins_with_array(spark, spec.files):
        options["multiLine"] = "true"
    schema = _stated_schema(spark, source, options, spec, target, format)
    reader = spark.read.format(format).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    elif format == "csv":
        reader = reader.option("inferSchema", options.get("inferSchema", "true"))
    return reader.load(spec.files).coalesce(tasks(spec.bytes))


def tasks(size: int) -> int:
    """Return how many tasks should read an input of so many bytes at most; Spark uses fewer for large splits."""
    return max(1, math.ceil(size / _MIN_TASK_BYTES))


def check_names(given: Sequence[str], table: str, wanted: Sequence[str]) -> None:
    """Make sure that two lists hold the same column names, in whatever order.

    Raises:
        InvalidInput: they do not.
    """
    have, want = {name.lower(): name for name in given}, {name.lower(): name for name in wanted}
    extra = [name for key, name in have.items() if key not in want]
    missing = [name for key, name in want.items() if key not in have]
    if not extra and not missing and len(have) == len(given):
        return
    problems = [f"{table} has no column {name!r}{suggestion(name, missing)}" for name in extra]
    problems += [f"the input has no column {name!r}" for name in missing]
    if len(have) < len(given):
        problems.append("a column occurs twice")
    raise InvalidInput(f"the columns of the input are not those of {table}: {'; '.join(problems)}")


def _default_options(format: str) -> dict[str, str]:
    if format == "csv":
        return {"header": "true", "enforceSchema": "false"}  # Spark then checks the header of every file
    if format in ("parquet", "orc"):
        return {"mergeSchema": "true"}  # else Spark drops a column that only some files have
    return {}


def _stated_schema(
    spark: SparkSession,
    source: Source,
    options: dict[str, str],
    spec: IngestSpec,
    target: StructType | None,
    format: str,
) -> StructType | str | None:
    """Return the schema to read text files with: that of the pipeline, else that of the table."""
    if source.schema_:
        return source.schema_
    if format == "csv" and options["header"].lower() != "true":
        raise InvalidInput("the CSV files have no header: name their columns in source.schema")
    if target is None or format not in ("csv", "json"):
        return None
    names = spark.read.format(format).options(**options).load(spec.files[:1] if format == "csv" else spec.files).columns
    check_names(names, next(iter(spec.tables)), target.names)
    by_name = {field.name.lower(): field for field in target.fields}
    return StructType([by_name[name.lower()] for name in names])


def _begins_with_array(spark: SparkSession, files: list[str]) -> bool:
    rows = spark.read.text(files[0]).filter("trim(value) <> ''").take(1)
    return bool(rows) and rows[0][0].lstrip("\ufeff \t").startswith("[")
