"""Reading a source so that nothing is dropped or blanked without a word."""

import math
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import suggestion
from sluice.pipeline.source import Source

_LEAST = 8 * 2**20
"""What a task reads at least, in bytes of the input. Each task leaves a file of its own: less makes tiny files."""


def read_source(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> DataFrame:
    """Read the files of a source.

    Args:
        target: the schema of the table, where it exists and no transform stands between: text is then
            read as the table's types, and a value that is none of them fails the read.

    Raises:
        InvalidInput: the columns of the files are not those of the table.
    """
    source = spec.write.source
    assert source is not None
    form = source.reader_format()
    options = {"mode": "FAILFAST", **_defaults(form), **source.options}
    if spec.base_path:
        options.setdefault("basePath", spec.base_path)
    if form == "json" and "multiLine" not in options and _begins_with_array(spark, spec.files):
        options["multiLine"] = "true"
    schema = _stated_schema(spark, source, options, spec, target, form)
    reader = spark.read.format(form).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    elif form == "csv":
        reader = reader.option("inferSchema", options.get("inferSchema", "true"))
    return reader.load(spec.files).coalesce(tasks(spec.bytes))


def tasks(size: int) -> int:
    """Return how many tasks an input of so many bytes is worth at most; Spark makes fewer of large splits."""
    return max(1, math.ceil(size / _LEAST))


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
    says = [f"{table} has no column {name!r}{suggestion(name, missing)}" for name in extra]
    says += [f"the input has no column {name!r}" for name in missing]
    if len(have) < len(given):
        says.append("a column occurs twice")
    raise InvalidInput(f"the columns of the input are not those of {table}: {'; '.join(says)}")


def _defaults(form: str) -> dict[str, str]:
    if form == "csv":
        return {"header": "true", "enforceSchema": "false"}  # so that the header of every file is checked
    if form in ("parquet", "orc"):
        return {"mergeSchema": "true"}  # else a column that only some files have is dropped
    return {}


def _stated_schema(
    spark: SparkSession,
    source: Source,
    options: dict[str, str],
    spec: IngestSpec,
    target: StructType | None,
    form: str,
) -> StructType | str | None:
    """Return the schema to read text files by: the one stated, else that of the table."""
    if source.schema_:
        return source.schema_
    if form == "csv" and options["header"].lower() != "true":
        raise InvalidInput("the CSV files have no header: name their columns in source.schema")
    if target is None or form not in ("csv", "json"):
        return None
    names = spark.read.format(form).options(**options).load(spec.files[:1] if form == "csv" else spec.files).columns
    check_names(names, next(iter(spec.tables)), target.names)
    by_name = {field.name.lower(): field for field in target.fields}
    return StructType([by_name[name.lower()] for name in names])


def _begins_with_array(spark: SparkSession, files: list[str]) -> bool:
    rows = spark.read.text(files[0]).filter("trim(value) <> ''").take(1)
    return bool(rows) and rows[0][0].lstrip("\ufeff \t").startswith("[")
