"""Find the columns of Parquet and ORC files whose type does not fit the type to read or write.

Spark's own errors name neither the file nor both types. Its ORC reader raises no error: it reads values that do not fit
as NULL.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StructField,
    StructType,
)

from sluice.contracts.spark_jobs import IngestSpec
from spark_jobs.source_files import nanoseconds
from spark_jobs.source_files.folder_columns import columns_of_folders
from spark_jobs.source_files.load_files import load_plainly, parse_schema
from spark_jobs.values.type_rules import is_assignable, readable_as

_MAX_FILES = 1000
"""Maximum number of files whose types are compared."""
_MAX_PROBLEMS = 5
_MERGED = ((IntegralType, FloatType, DoubleType), DecimalType)


def type_problems(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> list[str]:
    """Return the columns of Parquet and ORC files whose type does not fit, each with its file and both types.

    Args:
        target: the schema of the table, as for `read_source`. If there is neither a table nor a stated schema, the
            files are compared with each other.
    """
    source = spec.write.source
    if source is None or source.reader_format() not in ("parquet", "orc"):
        return []
    return list(islice(_problems(spark, spec, target), _MAX_PROBLEMS))


def _problems(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> Iterator[str]:
    source = spec.write.source
    assert source is not None
    wanted = parse_schema(source.schema_) if source.schema_ else target
    owner = "source.schema" if source.schema_ else next(iter(spec.tables))
    is_good = readable_as(source.reader_format()) if source.schema_ else is_assignable
    expected = {field.name.lower(): field.dataType for field in wanted or ()}
    first: dict[str, tuple[DataType, str]] = {}
    """The type of each column in the first file that has it. Without a stated schema, Spark merges the files' types."""
    options = _options(source.options) | nanoseconds.options_of(spec.nanoseconds)
    folders = columns_of_folders(spec)
    untyped = {file: {name.lower() for name in group.untyped} for group in spec.column_groups for file in group.files}
    for file in spec.files[:_MAX_FILES]:
        schema = load_plainly(spark, source.reader_format(), options, [file], None).schema
        for field in schema:
            name, type = field.name.lower(), field.dataType
            other = expected.get(name)
            if field.name in folders or name in untyped.get(file, ()):
                continue
            if other is not None and not is_good(type, other):
                yield _problem(file, field, owner, other)
            elif not source.schema_ and not _are_merged(
                type, (earlier := first.setdefault(name, (type, file)))[0], by_groups=bool(spec.column_groups)
            ):
                yield _problem(file, field, earlier[1], earlier[0])


def _are_merged(type: DataType, other: DataType, *, by_groups: bool) -> bool:
    """Return True if columns of these types in different files can be loaded as one column.

    Args:
        by_groups: True if each group of files is read separately (`column_groups`). Spark's own merge refuses numbers
            of two kinds.
    """
    return type == other or (by_groups and any(isinstance(type, kind) and isinstance(other, kind) for kind in _MERGED))


def _problem(file: str, field: StructField, owner: str, type: DataType) -> str:
    return f"{file}: {field.name} is {field.dataType.simpleString()}, and {owner} has {type.simpleString()}"


def _options(stated: Mapping[str, str]) -> dict[str, str]:
    """Return the stated options without those that concern several files."""
    return {name: value for name, value in stated.items() if name.lower() not in ("mergeschema", "basepath")}
