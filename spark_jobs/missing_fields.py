"""Check that each JSON record has the nested fields that a merge writes: a missing one would be set to NULL.

A key that a record lacks is NULL, also in a merge: that is the usual meaning in JSON. But a nested object that lacks a
field looks like a part of the object, and the merge replaces the whole.
"""

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from sluice.errors import InvalidInput
from spark_jobs.load_files import load_plainly, path_of_address

_RECORD, _FILE = "sluice_record", "sluice_file"
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
    paths = [path for path in _nested(schema, ()) if _address(path)]
    for files, more in groups:
        for first in range(0, len(paths), _AT_ONCE):
            some = paths[first : first + _AT_ONCE]
            records = _records(spark, {**options, **more}, files)
            lacking = [_lacks(path) for path in some]
            numbers = [F.count_if(each).alias(f"n{at}") for at, each in enumerate(lacking)]
            in_files = [F.min(F.when(each, F.col(_FILE))).alias(f"f{at}") for at, each in enumerate(lacking)]
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


def _records(spark: SparkSession, options: Mapping[str, str], files: list[str]) -> DataFrame:
    """Return each record as a VARIANT, which tells a missing field from one that is null, with the file's address."""
    lenient = {**options, "mode": "PERMISSIVE", "singleVariantColumn": _RECORD}  # the read itself refuses bad records
    rows = load_plainly(spark, "json", lenient, files, None)
    of_array = F.try_variant_get(_RECORD, "$", "array<variant>")
    each = F.explode(F.coalesce(of_array, F.array(_RECORD)))
    return rows.select(each.alias(_RECORD), F.col("_metadata.file_path").alias(_FILE))


def _lacks(path: Path) -> Column:
    parent = F.try_variant_get(_RECORD, _address(path[:-1]), "variant")
    value = F.try_variant_get(_RECORD, _address(path), "variant")
    return F.coalesce(parent.isNotNull() & ~F.is_variant_null(parent) & value.isNull(), F.lit(False))


def _address(path: Path) -> str:
    """Return the path of a field in a VARIANT; empty if a name has both kinds of quotes."""
    if any("'" in name and '"' in name for name in path):
        return ""
    return "$" + "".join(f'["{name}"]' if "'" in name else f"['{name}']" for name in path)
