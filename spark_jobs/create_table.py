"""Create the table that the pipeline defines, and write the rows of the source to it."""

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from sluice.identifiers import literal, quoted
from sluice.pipeline.table import Table
from sluice.pipeline.table_layout import order_parts, partition_parts
from spark_jobs.source_files.untyped_columns import UNTYPED_PROPERTY

_INCOMING = "incoming"


def create_table(spark: SparkSession, rows: DataFrame, table: str, spec: Table, untyped: Sequence[str] = ()) -> None:
    """Create a table from rows with SQL, since the DataFrame's writer supports neither `truncate` nor a sort order.

    Args:
        untyped: names of columns that have no type yet. A property of the table remembers them.
    """
    for column, comment in spec.comments.items():
        rows = rows.withMetadata(column, {"comment": comment})
    rows.createOrReplaceTempView(_INCOMING)
    partitions = ", ".join(_partition(term) for term in spec.partition_by)
    stated = {**spec.properties, **({UNTYPED_PROPERTY: json.dumps(list(untyped))} if untyped else {})}
    properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in stated.items())
    clauses = [
        f"CREATE TABLE {table}",
        f"({rows.schema.toDDL()})" if spec.sort_by else "",
        "USING iceberg",
        f"PARTITIONED BY ({partitions})" if partitions else "",
        f"COMMENT {literal(spec.comment)}" if spec.comment else "",
        f"TBLPROPERTIES ({properties})" if properties else "",
        "" if spec.sort_by else f"AS SELECT * FROM {_INCOMING}",
    ]
    spark.sql(" ".join(filter(None, clauses)))
    if spec.sort_by:  # Spark sorts the rows only if the table already has the order
        spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY {', '.join(map(_order, spec.sort_by))}")
        rows.writeTo(table).append()


def _order(term: str) -> str:
    by, direction, nulls = order_parts(term)
    return f"{_partition(by)} {direction}" + (f" NULLS {nulls}" if nulls else "")


def _partition(term: str) -> str:
    transform, argument, name = partition_parts(term)
    if transform == "identity":
        return quoted(name)
    return f"{transform}({quoted(name)})" if argument is None else f"{transform}({argument}, {quoted(name)})"
