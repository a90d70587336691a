"""Keep years outside of 1 to 9999, text that is not UTF-8, and maps with a key twice out of tables.

Spark writes such values without an error. PyIceberg, PyArrow and DuckDB then fail to read the table.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.spark_jobs import IngestSpec
from sluice.identifiers import quoted
from sluice.sizes import format_count
from spark_jobs.values.exact_text import contains_type
from spark_jobs.values.file_addresses import address_of_file, path_of_address
from spark_jobs.values.many_columns import with_columns, with_each
from spark_jobs.values.nested_values import any_value
from spark_jobs.values.schemas import replace_types
from spark_jobs.values.times import TIMES, is_known_year
from spark_jobs.values.type_rules import value_types

NOT_STORABLE = "which most readers of Iceberg cannot read"
BAD_YEAR = (
    f"with a year outside of 1 to 9999, {NOT_STORABLE} (DuckDB writes 'infinity' in this way): write another day or "
    "NULL into the file"
)
_BAD_TEXT = (
    f"with bytes that are not UTF-8, {NOT_STORABLE}: write the text as UTF-8, or convert it by a transform, such as "
    "decode(CAST({name} AS BINARY), 'ISO-8859-1')"
)
_REPEATED_KEY = (
    f"with a map that has a key twice, {NOT_STORABLE}: write each key once, or convert it by a transform, such as "
    "map_entries({name})"
)
_REPLACE = ", or replace it by a transform"
_TEXT_FORMATS = ("csv", "json")
_SHOWN = 32
"""Maximum number of bytes of a text that are shown."""
_TOGETHER = 100
"""Number of columns that one query searches."""
_MOST_PROBLEMS = 5


def keep_values_storable(rows: DataFrame, spec: IngestSpec, target: StructType | None) -> DataFrame:
    """Return the rows with a guard that fails the write at a value that other programs could not read.

    Args:
        target: the schema of the table, or None if the write creates it.
    """
    binaries = [field for field in rows.schema if _becomes_text(field, target)]
    by_name = {each.name for each in binaries}
    others = [
        field
        for field in rows.schema
        if field.name not in by_name and _bad(F.lit(None), field, spec, target) is not None
    ]
    guarded = {each.name: _guarded(F.col(quoted(each.name)), each, spec, target) for each in binaries}
    return with_each(with_columns(rows, guarded), others, lambda column, field: _guarded(column, field, spec, target))


def unstorable_values(rows: DataFrame, spec: IngestSpec, target: StructType | None) -> list[str]:
    """Return the columns with values that other programs could not read, each with a count and the first file."""
    bad = [(field, _bad(F.col(quoted(field.name)), field, spec, target)) for field in rows.schema]
    stated = [(field, each) for field, each in bad if each is not None]
    problems: list[str] = []
    for begin in range(0, len(stated), _TOGETHER):
        some = stated[begin : begin + _TOGETHER]
        counts = rows.agg(*[F.count_if(each) for _, each in some]).collect()[0]
        unstorable = [(field, each, count) for (field, each), count in zip(some, counts, strict=True) if count]
        problems += [_problem(rows, field, each, count, spec) for field, each, count in unstorable]
        if len(problems) >= _MOST_PROBLEMS:
            break
    return problems[:_MOST_PROBLEMS]


def _problem(rows: DataFrame, field: StructField, bad: Column, count: int, spec: IngestSpec) -> str:
    shown = _shown(F.col(quoted(field.name)), field.dataType).alias("shown")
    repeats = any_value(F.col(quoted(field.name)), field.dataType, _repeats_key)
    repeats_key = (F.lit(False) if repeats is None else repeats).alias("repeats_key")
    first = (
        rows.select(bad.alias("is_bad"), shown, repeats_key, address_of_file(rows).alias("file"))
        .filter("is_bad")
        .take(1)
    )
    file, text = (path_of_address(first[0]["file"]), first[0]["shown"]) if first else ("", None)
    details = ", ".join(part for part in (file, f"such as {text}" if text and spec.show_values else "") if part)
    where = f" ({details})" if details else ""
    is_time = contains_type(field.dataType, TIMES)
    what = f"{BAD_YEAR}{_REPLACE}" if is_time else _BAD_TEXT.format(name=quoted(field.name))
    if first and first[0]["repeats_key"]:
        what = _REPEATED_KEY.format(name=quoted(field.name))
    return f"{field.name}: {format_count(count, 'row')}{where} {what}"


def _shown(column: Column, type: DataType) -> Column:
    """Return the text of a value, in hexadecimal digits if it is no time, or NULL for a nested value."""
    if isinstance(type, TIMES):
        return column.cast(StringType())
    if isinstance(type, StringType | BinaryType):
        return F.concat(F.lit("0x"), F.hex(F.substring(column.cast(BinaryType()), 1, _SHOWN)))
    return F.lit(None).cast(StringType())


def _guarded(column: Column, field: StructField, spec: IngestSpec, target: StructType | None) -> Column:
    bad = _bad(column, field, spec, target)
    assert bad is not None
    return F.when(bad, F.raise_error(F.lit(f"a value, {NOT_STORABLE}"))).otherwise(column)


def _bad(column: Column, field: StructField, spec: IngestSpec, target: StructType | None) -> Column | None:
    """Return a column that is true if other programs could not read some value, or None if they can read all."""
    if _becomes_text(field, target):
        as_text = replace_types(field, (BinaryType,), StringType()).dataType
        return any_value(column.cast(as_text), as_text, _is_unstorable)
    return any_value(column, field.dataType, _is_unstorable if _may_be_broken(spec) else _is_bad_year)


def _may_be_broken(spec: IngestSpec) -> bool:
    """Return True if text may be something else than UTF-8. The text of CSV and JSON was inspected."""
    source = spec.write.source
    return source is None or spec.write.transform is not None or source.reader_format() not in _TEXT_FORMATS


def _becomes_text(field: StructField, target: StructType | None) -> bool:
    """Return True if the table stores bytes of a column as text."""
    wanted = next((each for each in target or () if each.name.lower() == field.name.lower()), None)
    return wanted is not None and any(
        isinstance(own, BinaryType) and isinstance(other, StringType)
        for own, other in value_types(field.dataType, wanted.dataType)
    )


def _is_bad_year(value: Column, type: DataType) -> Column | None:
    return ~is_known_year(value, type) if isinstance(type, TIMES) else None


def _repeats_key(value: Column, type: DataType) -> Column | None:
    if not isinstance(type, MapType):
        return None
    keys = F.map_keys(value)
    if isinstance(type.keyType, FloatType | DoubleType):  # 0.0 and -0.0 are one key
        keys = F.transform(keys, lambda key: key + F.lit(0.0))
    return F.size(F.array_distinct(keys)) < F.size(keys)


def _is_unstorable(value: Column, type: DataType) -> Column | None:
    if isinstance(type, MapType):
        return _repeats_key(value, type)
    return ~F.is_valid_utf8(value) if isinstance(type, StringType) else _is_bad_year(value, type)
