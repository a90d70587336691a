"""Columns without a type yet: a new table omits them, and later files that give them a type add them.

Arrow and pandas write a Parquet column that contains only NULL without a type. In text files, a column without values
does not show its type. Spark would read such a column as whole numbers or text, and a table with that type could not
store the values of later files.
"""

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, NullType, StructField, StructType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.identifiers import literal, quoted, quoted_table
from spark_jobs.job import report_progress
from spark_jobs.values.schemas import sql_type

UNTYPED_PROPERTY = "sluice.untyped-columns"
"""Name of the table property with the columns to which no file has given a type yet, as JSON."""


def drop_untyped(rows: DataFrame, existing: StructType | None) -> tuple[DataFrame, list[str]]:
    """Return the rows without the untyped columns that the table does not have, and the names of these columns."""
    have = {name.lower() for name in existing.names} if existing is not None else set()
    names = [
        field.name for field in rows.schema if isinstance(field.dataType, NullType) and field.name.lower() not in have
    ]
    return rows.drop(*names), names


def add_typed_columns(spark: SparkSession, rows: DataFrame, table: str, existing: StructType) -> StructType:
    """Add the columns that had no type when the table was created, and have one now; return the table's schema."""
    have = {name.lower() for name in existing.names}
    new = [field for field in rows.schema if field.name.lower() not in have]
    remembered = untyped_columns(spark, table) if new else []
    waiting = {name.lower() for name in remembered}
    added = [field for field in new if field.name.lower() in waiting]
    if not added:
        return existing
    report_progress(f"adding columns that have a type now: {', '.join(field.name for field in added)}")
    columns = ", ".join(f"{quoted(field.name)} {sql_type(field.dataType)}" for field in added)
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")
    typed = {field.name.lower() for field in added}
    left = [name for name in remembered if name.lower() not in typed]
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ({literal(UNTYPED_PROPERTY)} = {literal(json.dumps(left))})"
        if left
        else f"ALTER TABLE {table} UNSET TBLPROPERTIES ({literal(UNTYPED_PROPERTY)})"
    )
    return spark.table(table).schema


def untyped_columns(spark: SparkSession, table: str) -> list[str]:
    """Return the columns that the table omits because no file has given them a type yet."""
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    return [str(name) for name in json.loads(properties.get(UNTYPED_PROPERTY, "[]"))]


def waiting_columns(spark: SparkSession, spec: IngestSpec, names: Sequence[str], target: StructType) -> list[str]:
    """Return the columns of files that the table omits because no file has given them a type yet."""
    have = {name.lower() for name in target.names}
    new = [name for name in names if name.lower() not in have]
    if not new:
        return []
    table = quoted_table(next(iter(spec.tables)), spec.spark_catalog)
    untyped = {name.lower() for name in untyped_columns(spark, table)}
    return [name for name in new if name.lower() in untyped]


def with_fields(schema: StructType, types: Mapping[str, DataType]) -> StructType:
    """Return a schema with additional fields at its end."""
    return StructType([*schema.fields, *(StructField(name, type) for name, type in types.items())])
