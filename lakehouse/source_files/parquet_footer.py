"""Read the footers of Parquet files: row counts, and columns whose types differ between files."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING

from lakehouse.source_files.foreign_times import NO_TIMES, ColumnsOfTimes, is_of_spark
from lakehouse.source_files.headers import check_distinct
from lakehouse.source_files.listing import ListedFile
from lakehouse.source_files.missing_fields import Structs, structs_of
from lakehouse.source_files.stored_schema import SPARK_SCHEMA, check_stored_schema
from lakehouse.source_files.variants import variant_columns
from sluice.contracts.spark_jobs import ColumnGroup, NanosecondColumn
from sluice.errors import InvalidInput

if TYPE_CHECKING:
    from pyarrow import DataType, Field, Schema
    from pyarrow.parquet import ColumnSchema, FileMetaData, RowGroupMetaData

UNTYPED = "null"
_MAX_PRECISION = 38
_NOT_READ = {"UUID": "text", "TIME": "text", "FLOAT16": "FLOAT"}
"""Replacements for the types that Spark does not read."""
_BYTES_OF_INT128 = 16
_ARROW_SCHEMA, _NO_SCHEMA = b"ARROW:schema", b"IGNORED:type"
"""Key of the types of the writing library in the metadata, and a key of the same length that PyArrow ignores."""
_EXTENSION = b"ARROW:extension:name"
"""Key of the name of an extension type in a field's metadata, if its library is not loaded."""
_AS_NUMBERS = {"pandas.period": "a DATE, or as text (pandas: .astype(str))", "arrow.bool8": "BOOLEAN"}
"""Replacements for the extension types that Spark reads as whole numbers."""
_NOT_UNPACKED = ("BROTLI", "LZO")
_NOT_DECODED = "BYTE_STREAM_SPLIT"
"""Encoding of Parquet that Spark's vectorized reader does not support for any type."""
_TAIL = 64 * 1024
"""Number of bytes read at first, enough for most footers."""
_END = 8
"""Number of bytes after the footer: its length, and `PAR1`. Source: the Parquet format, "File format"."""


@dataclass(frozen=True)
class ParquetFooter:
    """Content of the footer of a Parquet file."""

    rows: int
    types: Mapping[str, str]
    """Arrow's name for the type of each column, if it is a number.

    `null` stands for a column of the logical type UNKNOWN, which contains only NULL; empty for all other types.
    """
    nanoseconds: Mapping[str, bool] = field(default_factory=dict)
    """Columns with times in nanoseconds; True for a column in UTC."""
    int96: ColumnsOfTimes = NO_TIMES
    """Columns with times of the type INT96, unless Spark wrote the file: Spark writes no nanoseconds."""
    variants: Sequence[str] = ()
    """Columns and fields of the type VARIANT."""
    structs: Structs = ()


@dataclass(frozen=True)
class OpenedFooter:
    """The footer of a Parquet file, before its columns are checked."""

    path: str
    metadata: "FileMetaData"
    schema: "Schema"
    has_int128: bool
    """True if columns are whole numbers of 128 bits, as Polars writes them."""


def read_footer(file: ListedFile) -> ParquetFooter:
    """Read the footer of a Parquet file.

    Raises:
        InvalidInput: the file has no footer or was changed, or Spark does not read one of its columns.
        ServiceUnavailable: its store does not answer.
    """
    opened = open_footer(file)
    check_columns(opened)
    metadata, schema = opened.metadata, opened.schema
    return ParquetFooter(
        metadata.num_rows,
        _shared(tuple((intern(each.name), _type_name(each.type)) for each in schema)),
        _nanoseconds(file.path, metadata),
        _int96(metadata, schema),
        variant_columns(metadata),
        structs_of(schema),
    )


def open_footer(file: ListedFile) -> OpenedFooter:
    """Read the footer of a Parquet file without any check of its columns.

    Raises:
        InvalidInput: the file has no footer, or it was changed.
        ServiceUnavailable: its store does not answer.
    """
    from pyarrow import ArrowException, ArrowNotImplementedError  # noqa: PLC0415  # slow to import

    tail = file.read_tail(min(_TAIL, file.size))
    size = int.from_bytes(tail[-_END:-4], "little") + _END
    if len(tail) < size <= file.size:
        tail = file.read_tail(size)
    try:
        try:
            return _opened(file.path, tail)
        except ArrowNotImplementedError:  # by the types of the writing library, such as Polars' Int128
            return _opened(file.path, tail.replace(_ARROW_SCHEMA, _NO_SCHEMA), has_int128=True)
    except (ArrowException, OSError) as error:
        raise InvalidInput(f"{file.path} is not a complete parquet file: {str(error).splitlines()[0][:200]}") from error


def _opened(path: str, tail: bytes, *, has_int128: bool = False) -> OpenedFooter:
    from pyarrow import parquet  # noqa: PLC0415

    metadata = parquet.read_metadata(io.BytesIO(tail))
    return OpenedFooter(path, metadata, metadata.schema.to_arrow_schema(), has_int128)


def check_columns(footer: OpenedFooter) -> None:
    """Check that Spark reads the columns of a Parquet file.

    Raises:
        InvalidInput: there is a list, map or struct of values without a type, a duration, a period of pandas, another
            type, compression or encoding that Spark does not read, two columns whose names differ only in capital
            letters, or other columns than in the schema that Spark stored.
    """
    _check_readable(footer)
    check_distinct(footer.path, footer.schema.names)
    check_stored_schema(footer.path, footer.schema, (footer.metadata.metadata or {}).get(SPARK_SCHEMA, b""))
    for each in footer.schema:
        if remedy := _remedy_for_extension(each):
            raise InvalidInput(
                f"{footer.path}: the column {each.name} has values of a Python library, which Spark reads as whole "
                f"numbers: write it as {remedy}"
            )
        if _contains_untyped(each.type):
            raise InvalidInput(
                f"{footer.path}: the column {each.name} is {each.type}, a type without values, which Spark reads as "
                "whole numbers: write the column with the type of its values, or leave it out of the file"
            )
        if _contains_duration(each.type):
            raise InvalidInput(
                f"{footer.path}: the column {each.name} is {each.type}, which Spark reads as whole numbers without "
                "their unit: write it as BIGINT in a column whose name has the unit, such as wait_seconds, or as text"
            )


def nanosecond_columns(footers: Mapping[str, ParquetFooter]) -> list[NanosecondColumn]:
    """Return the columns with times in nanoseconds.

    Raises:
        InvalidInput: such a column has another unit in some files.
    """
    columns: dict[str, tuple[NanosecondColumn, str]] = {}
    """Each column and the first file that has it, by the name in lower case: Spark merges names in any case."""
    for path, footer in footers.items():
        for name, is_utc in footer.nanoseconds.items():
            columns.setdefault(name.lower(), (NanosecondColumn(name=name, is_utc=is_utc), path))
    for path, footer in footers.items() if columns else ():
        units = {name.lower(): footer.nanoseconds.get(name) for name in footer.types}
        for key, (column, first) in columns.items():
            if key in units and units[key] != column.is_utc:
                raise InvalidInput(
                    f"the column {column.name} has nanoseconds in {first} and another unit, zone or type in {path}: "
                    "write it with one type in all files"
                )
    return [column for column, _ in columns.values()]


def column_groups(footers: Mapping[str, ParquetFooter]) -> list[ColumnGroup]:
    """Return groups of files with at most one type for each column; empty if all files form one group.

    Groups arise only from columns without a type and from numbers of different types. Spark merges or refuses other
    differences. Spark does not distinguish names by capital letters. Each group is a separate read, which costs time to
    plan, so a file joins the first group that has no other type for one of its columns.
    """
    by_column: dict[str, set[str]] = {}
    for footer in footers.values():
        for name, type in footer.types.items():
            by_column.setdefault(name.lower(), set()).add(type)
    mixed = {name for name, types in by_column.items() if UNTYPED in types or (len(types) > 1 and "" not in types)}
    by_types: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for path, footer in footers.items() if mixed else ():
        types = tuple((name, type) for name, type in footer.types.items() if name.lower() in mixed)
        by_types.setdefault(types, []).append(path)
    groups: list[tuple[dict[str, str], ColumnGroup]] = []
    for types, files in by_types.items():
        own = {name.lower(): type for name, type in types}
        known, group = next(
            (each for each in groups if all(each[0].get(name, type) == type for name, type in own.items())),
            (None, None),
        )
        if known is None or group is None:
            known, group = {}, ColumnGroup(files=[], untyped=[])
            groups.append((known, group))
        group.files.extend(files)
        group.untyped.extend(name for name, type in types if type == UNTYPED and name.lower() not in known)
        known |= own
    return [group for _, group in groups]


def _check_readable(footer: OpenedFooter) -> None:
    """Verify that Spark reads the types, the compression and the encoding of all columns.

    Raises:
        InvalidInput: Spark does not read one of them.
    """
    path, metadata = footer.path, footer.metadata
    groups = _outer_groups(metadata)
    for number in range(metadata.num_columns):
        column = metadata.schema.column(number)
        if stated := _not_read(column, has_int128=footer.has_int128):
            type, remedy = stated
            raise InvalidInput(
                f"{path}: the column {column.path} is {type}, which Spark does not read: write it as {remedy}"
            )
        if metadata.num_row_groups and (codec := metadata.row_group(0).column(number).compression) in _NOT_UNPACKED:
            raise InvalidInput(
                f"{path}: the column {column.path} is compressed by {codec}, which Spark does not read: write the file "
                "with zstd, snappy or gzip"
            )
        if any(_NOT_DECODED in group.column(number).encodings for group in groups):
            raise InvalidInput(
                f"{path}: the column {column.path} has the encoding {_NOT_DECODED}, which Spark does not read: write "
                "the file without it (PyArrow: leave out use_byte_stream_split and column_encoding)"
            )


def _outer_groups(metadata: "FileMetaData") -> "list[RowGroupMetaData]":
    """Return the first and the last row group. A writer encodes a column in the others as in these."""
    number = metadata.num_row_groups
    return [metadata.row_group(each) for each in sorted({0, number - 1})] if number else []


def _not_read(column: "ColumnSchema", *, has_int128: bool) -> tuple[str, str] | None:
    """Return the name of a column's type and what to write instead, or None if Spark reads the type."""
    type = column.logical_type.type
    if type == "DECIMAL" and column.precision > _MAX_PRECISION:
        return f"DECIMAL({column.precision},{column.scale})", "text, or with fewer digits"
    if column.converted_type == "INTERVAL":
        return "INTERVAL", "text, or as a number of seconds, days or months"
    if has_int128 and column.length == _BYTES_OF_INT128 and type == "NONE":
        return "INT128", "a BIGINT, or as DECIMAL(38,0)"
    return (type, _NOT_READ[type]) if type in _NOT_READ else None


def _nanoseconds(path: str, metadata: "FileMetaData") -> Mapping[str, bool]:
    """Return the columns with times in nanoseconds.

    Raises:
        InvalidInput: a list, map or struct contains such times, which Spark does not read.
    """
    columns: dict[str, bool] = {}
    for number in range(metadata.num_columns):
        column = metadata.schema.column(number)
        if column.logical_type.type != "TIMESTAMP":
            continue
        stated = json.loads(column.logical_type.to_json())
        if stated["timeUnit"] == "nanoseconds":
            if column.path != column.name or column.max_repetition_level:
                raise InvalidInput(
                    f"{path}: the field {column.path} has nanoseconds, which Spark does not read: write it with "
                    "microseconds"
                )
            columns[column.name] = stated["isAdjustedToUTC"]
    return columns


def _int96(metadata: "FileMetaData", schema: "Schema") -> ColumnsOfTimes:
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    paths = [column.path for column in columns if column.physical_type == "INT96"]
    if not paths or is_of_spark(metadata.metadata):
        return NO_TIMES
    fields = [each for each in schema if any(path == each.name or path.startswith(f"{each.name}.") for path in paths)]
    return ColumnsOfTimes("int96", tuple((each.name, str(each.type)) for each in fields))


@lru_cache(maxsize=32)
def _shared(types: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return the types by column: one mapping for all files with the same columns, which may be 100,000 files."""
    return dict(types)


def _contains_untyped(type: "DataType") -> bool:
    """Return True if a list, map or struct contains values without a type, at any depth."""
    from pyarrow import types  # noqa: PLC0415

    return any(types.is_null(each) or _contains_untyped(each) for each in _inner_types(type))


def _contains_duration(type: "DataType") -> bool:
    """Return True if a type is a duration or contains one. Only PyArrow's own schema in the file states durations."""
    from pyarrow import types  # noqa: PLC0415

    return types.is_duration(type) or any(map(_contains_duration, _inner_types(type)))


def _remedy_for_extension(field: "Field") -> str:
    """Return what to write instead of an extension type of Arrow that Spark reads as whole numbers, or nothing."""
    name = getattr(field.type, "extension_name", "") or (field.metadata or {}).get(_EXTENSION, b"").decode()
    inner = (field.type.field(number) for number in range(field.type.num_fields))
    return _AS_NUMBERS.get(name) or next(filter(None, map(_remedy_for_extension, inner)), "")


def _inner_types(type: "DataType") -> list["DataType"]:
    return [type.field(number).type for number in range(type.num_fields)]


def _type_name(type: "DataType") -> str:
    from pyarrow import types  # noqa: PLC0415

    is_number = types.is_integer(type) or types.is_floating(type) or types.is_decimal(type)
    return intern(str(type)) if is_number or types.is_null(type) else ""
