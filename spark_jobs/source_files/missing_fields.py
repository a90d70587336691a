"""Check that each JSON record has the nested fields that a merge writes: a missing one would be set to NULL.

A key that a record lacks is NULL, also in a merge: that is the usual meaning in JSON. But a nested object that lacks a
field looks like a part of the object, and the merge replaces the whole.
"""

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from sluice.errors import InvalidInput
from spark_jobs.source_files.json_shapes import FILE, RECORD, address_of, json_records
from spark_jobs.values.file_addresses import path_of_address

_AT_ONCE = 100
"""Maximum number of fields in one query, which grows with them."""

Path = tuple[str, ...]
"""Names of the fields from a column to a nested field."""


def check_nested_fields(
    spark: SparkSession,
    options: Mapping[str, str],
    groups: Sequence[tuple[list[str], dict[str, str]]],
    schema: StructType,
    table: str,
) -> None:
    """Check that each nested object of the records has all fields of its column.

    Args:
        schema: the fields of the table, with the names of the files.

    Raises:
        InvalidInput: an object lacks a field.
    """
    paths = [path for path in _nested(schema, ()) if address_of(path)]
    for files, more in groups:
        for first in range(0, len(paths), _AT_ONCE):
            some = paths[first : first + _AT_ONCE]
            records = json_records(spark, {**options, **more}, files)
            lacking = [_lacks(path) for path in some]
            numbers = [F.count_if(each).alias(f"n{at}") for at, each in enumerate(lacking)]
            in_files = [F.min(F.when(each, F.col(FILE))).alias(f"f{at}") for at, each in enumerate(lacking)]
            (row,) = records.agg(*numbers, *in_files).collect()
            for at, path in enumerate(some):
                if number := row[f"n{at}"]:
                    raise InvalidInput(_problem(path, number, path_of_address(row[f"f{at}"]), table))


def _problem(path: Path, number: int, file: str, table: str) -> str:
    records = f"{number:,} records have" if number > 1 else "1 record has"
    return (
        f"{file}: {records} no field {'.'.join(path)}, and a merge would set it to NULL in {table}: write it into each "
        f"{'.'.join(path[:-1])}, or state `transform: SELECT * FROM source` if NULL is right"
    )


def _nested(type: DataType, parent: Path) -> Iterator[Path]:
    """Yield the fields within structs that are not in an array or a map: a merge replaces those as a whole."""
    for field in type if isinstance(type, StructType) else ():
        path = (*parent, field.name)
        if parent:
            yield path
        yield from _nested(field.dataType, path)


def _lacks(path: Path) -> Column:
    parent = F.try_variant_get(RECORD, address_of(path[:-1]), "variant")
    value = F.try_variant_get(RECORD, address_of(path), "variant")
    return F.coalesce(parent.isNotNull() & ~F.is_variant_null(parent) & value.isNull(), F.lit(False))
