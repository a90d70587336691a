"""Keys of `mode: merge`: compare them in the types of the table, and require that each row has a key of its own.

Spark compares two types in a third one: a BIGINT and a DOUBLE as DOUBLE, text and a number as numbers. So it would
replace the row with the key 2^53 + 1 by one with the key 2^53, and the row with the key `05` by one with the key 5.
"""

import sys

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StringType, StructField, StructType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted, suggestion
from sluice.sizes import format_count
from spark_jobs.values.exact_values import cannot_be_stored, is_stored_exactly
from spark_jobs.values.file_addresses import address_of_file, path_of_address
from spark_jobs.values.many_columns import with_columns
from spark_jobs.values.type_rules import fits, is_assignable

_INCOMING = "incoming"
_ROWS = "sluice_rows"
_NESTED = (StructType, ArrayType, MapType)


def keys_as_in_table(rows: DataFrame, spec: IngestSpec, target: StructType) -> DataFrame:
    """Return the rows with their merge keys in the types of the table.

    A key of a type that the table's column does not accept stays, so that the write fails on it.

    Raises:
        InvalidInput: the table cannot store a key exactly, or a nested key has other fields than the table's.
    """
    have = {field.name.lower(): field for field in rows.schema}
    wanted = {field.name.lower(): field.dataType for field in target}
    keys = [key.lower() for key in spec.write.keys if key.lower() in have and key.lower() in wanted]
    other = [(have[key], wanted[key]) for key in keys if not _is_same_type(have[key].dataType, wanted[key])]
    for field, type in other:
        if isinstance(field.dataType, _NESTED):
            raise InvalidInput(
                f"the merge key {field.name} is {field.dataType.simpleString()} in the input, and "
                f"{type.simpleString()} in the table: convert it by a transform"
            )
        if isinstance(field.dataType, FloatType | DoubleType) and isinstance(type, StringType):
            raise InvalidInput(
                f"the merge key {field.name} is {field.dataType.simpleString()} in the input, and text in the table: 5 "
                "would become '5.0'. Convert it by a transform, or state its type in source.schema"
            )
    cast = [(field, type) for field, type in other if is_assignable(field.dataType, type)]
    lossy = [
        (field, type) for field, type in cast if not isinstance(type, StringType) and not fits(field.dataType, type)
    ]
    _check_exact(rows, lossy, spec)
    return with_columns(rows, {field.name: F.col(quoted(field.name)).cast(type) for field, type in cast})


def _is_same_type(have: DataType, wanted: DataType) -> bool:
    return have.simpleString() == wanted.simpleString()


def _check_exact(rows: DataFrame, keys: list[tuple[StructField, DataType]], spec: IngestSpec) -> None:
    """Check that keys stay the same in other types. Unlike other values, they are not rounded to a FLOAT."""
    if not keys:
        return
    columns = [address_of_file(rows).alias("file")]
    aggregates = []
    for number, (field, type) in enumerate(keys):
        column, text = F.col(quoted(field.name)), F.col(f"text{number}")
        columns.append(
            F.when(~_stays_same(column, field.dataType, type), column.cast(StringType())).alias(f"text{number}")
        )
        aggregates += [F.count(text), F.min(F.when(text.isNotNull(), F.struct("file", text.alias("text"))))]
    counts = rows.select(*columns).agg(*aggregates).collect()[0]
    problems = []
    for number, (field, type) in enumerate(keys):
        count, first = counts[2 * number], counts[2 * number + 1]
        if count:
            shown = f"such as {first['text']}" if spec.show_values else ""
            where = ", ".join(part for part in (path_of_address(first["file"]), shown) if part)
            problems.append(f"the merge key {cannot_be_stored(field, type, count, where)}")
    if problems:
        raise InvalidInput("; ".join(problems))


def _stays_same(column: Column, have: DataType, wanted: DataType) -> Column:
    return is_stored_exactly(column, have, wanted) & column.try_cast(wanted).try_cast(have).eqNullSafe(column)


def check_keys(rows: DataFrame, keys: list[str], *, show_values: bool) -> int:
    """Return the number of rows. Check that each has a key of its own, since a merge would add rows twice otherwise.

    Raises:
        InvalidInput: a key is missing, NULL, or occurs twice.
    """
    for key in keys:
        if key not in rows.columns:
            raise InvalidInput(f"the merge key {key!r} is not a column of the input{suggestion(key, rows.columns)}")
    columns = [F.col(quoted(key)) for key in keys]
    has_no_key = F.expr(" OR ".join(f"{quoted(key)} IS NULL" for key in keys))
    number, without = rows.agg(F.count(F.lit(1)), F.count_if(has_no_key)).collect()[0]
    if without:
        addresses = rows.filter(has_no_key).select(address_of_file(rows).alias("file"))
        file = addresses.agg(F.min("file")).collect()[0][0]
        where = f" ({path_of_address(file)})" if file else ""
        raise InvalidInput(
            f"{format_count(without, 'row')} without a value in a merge key ({', '.join(keys)}){where}: write a value "
            "into each, or leave these rows out by a transform"
        )
    repeated = rows.groupBy(*columns).agg(F.count(F.lit(1)).alias(_ROWS)).filter(F.col(_ROWS) > 1).take(3)
    if repeated:
        examples = "; ".join(", ".join(str(row[key]) for key in keys) for row in repeated)
        print(f"repeated merge keys: {examples}", file=sys.stderr)  # for the log
        such_as = f", such as {examples}" if show_values else ""
        raise InvalidInput(
            f"merge keys ({', '.join(keys)}) occur more than once in the input{such_as}: keep one row of each key in "
            "the files, or by a transform with row_number()"
        )
    return int(number)


def merge(spark: SparkSession, rows: DataFrame, table: str, keys: list[str]) -> None:
    """Merge rows into a table. Their keys have the types of the table."""
    rows.createOrReplaceTempView(_INCOMING)
    matched = " AND ".join(f"old.{quoted(key)} = new.{quoted(key)}" for key in keys)
    spark.sql(
        f"MERGE INTO {table} AS old USING {_INCOMING} AS new ON {matched} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
