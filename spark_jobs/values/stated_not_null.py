"""Refuse a NULL in a column or field that `source.schema` states as NOT NULL.

Spark's readers ignore the constraint.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.identifiers import quoted
from sluice.sizes import format_count
from spark_jobs.values.file_addresses import path_of_address
from spark_jobs.values.many_columns import any_of

BROKEN_NOT_NULL = "and source.schema states NOT NULL"
_ADVICE = "write a value into the file, or leave out NOT NULL"


def keep_not_null(rows: DataFrame, spec: IngestSpec) -> DataFrame:
    """Return the rows of a source with a guard that fails the write at a NULL where the schema states NOT NULL.

    The guard is a filter, so that it also applies to a column that a transform drops.
    """
    fields = not_null_fields(spec)
    if not fields:
        return rows
    failed = F.raise_error(F.lit(f"a value is NULL, {BROKEN_NOT_NULL}")).cast("boolean")
    return rows.filter(F.when(any_of(fields, breaks_not_null), failed).otherwise(F.lit(True)))


def not_null_fields(spec: IngestSpec) -> list[StructField]:
    """Return the columns of the stated schema that are NOT NULL, or have such a field at any depth."""
    source = spec.write.source
    if source is None or not source.schema_:
        return []
    stated = StructType.fromDDL(source.schema_)
    assert isinstance(stated, StructType)
    return [field for field in stated if not field.nullable or _has_constraint(field.dataType)]


def _has_constraint(type: DataType) -> bool:
    match type:
        case StructType():
            return any(not field.nullable or _has_constraint(field.dataType) for field in type)
        case ArrayType():
            return _has_constraint(type.elementType)
        case MapType():
            return _has_constraint(type.valueType)
    return False


def breaks_not_null(column: Column, field: StructField) -> Column:
    """Return a column that is true if a value, or a field in it, is NULL against the schema."""
    inner = F.coalesce(_breaks_within(column, field.dataType), F.lit(False))
    return inner if field.nullable else column.isNull() | inner


def _breaks_within(column: Column, type: DataType) -> Column:
    match type:
        case StructType() if _has_constraint(type):
            broken = F.lit(False)
            for field in type:
                broken |= breaks_not_null(column.getField(field.name), field)
            return column.isNotNull() & broken
        case ArrayType() if _has_constraint(type):
            return F.exists(column, lambda each: _breaks_within(each, type.elementType))
        case MapType() if _has_constraint(type):
            return F.exists(F.map_values(column), lambda each: _breaks_within(each, type.valueType))
    return F.lit(False)


def null_problems(rows: DataFrame, spec: IngestSpec) -> list[str]:
    """Return the columns of a source that are NULL against the schema, each with a count and the first file."""
    problems = []
    for field in not_null_fields(spec):
        broken = rows.filter(breaks_not_null(F.col(quoted(field.name)), field)).select(
            F.input_file_name().alias("file")
        )
        count, file = broken.agg(F.count(F.lit(1)), F.min("file")).collect()[0]
        if count:
            where = f" ({path_of_address(file)})" if file else ""
            is_or_are = "is" if count == 1 else "are"
            problems.append(f"{field.name}: {format_count(count, 'row')}{where} {is_or_are} {describe_null(field)}")
    return problems


def describe_null(field: StructField) -> str:
    """Return what is wrong with a value that is NULL against the schema."""
    nested = ", or has a field that is NULL" if _has_constraint(field.dataType) else ""
    return f"NULL{nested}, {BROKEN_NOT_NULL}: {_ADVICE}"
