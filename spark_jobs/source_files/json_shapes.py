"""Find the parts of JSON records without a value: Spark infers no column from `{}`, and text from NULL and `[]`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, NullType, StringType, StructField, StructType

from spark_jobs.source_files.file_columns import LIST
from spark_jobs.source_files.load_files import Group, load_plainly
from spark_jobs.values.file_addresses import path_of_address

RECORD, FILE = "sluice_record", "sluice_file"
_FIRST_ROWS = 1_000
_TOKEN = re.compile(r"`(?P<quoted>(?:[^`]|``)*)`|(?P<word>\w+)(?P<digits>\([\d,]+\))?|(?P<mark>[<>:,])")

Shape: TypeAlias = dict[str, Any] | list[Any] | bool
"""The shape of one part of all records: the fields of its objects; the shape of its elements, as a list of one; True
for a value of another kind, or for values of several kinds; False if there is only NULL."""


def json_records(spark: SparkSession, options: Mapping[str, str], files: list[str]) -> DataFrame:
    """Return each record as a VARIANT, which tells a missing field from one that is null, with the file's address."""
    lenient = {**options, "mode": "PERMISSIVE", "singleVariantColumn": RECORD}  # the read itself refuses bad records
    rows = load_plainly(spark, "json", lenient, files, None)
    of_array = F.try_variant_get(RECORD, "$", "array<variant>")
    each = F.explode(F.coalesce(of_array, F.array(RECORD)))
    return rows.select(each.alias(RECORD), F.col("_metadata.file_path").alias(FILE))


def file_with_field(
    spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group], path: Sequence[str]
) -> str:
    """Return the path of a file with a record that has a field; empty for a field within a list or a map."""
    for files, own in groups if LIST not in path and address_of(path) else ():
        records = json_records(spark, {**options, **own}, files)
        has_field = F.try_variant_get(RECORD, address_of(path), "variant").isNotNull()
        for row in records.filter(has_field).select(FILE).take(1):
            return path_of_address(row[FILE])
    return ""


def address_of(path: Sequence[str]) -> str:
    """Return the path of a field in a VARIANT; empty if a name has both kinds of quotes."""
    if any("'" in name and '"' in name for name in path):
        return ""
    return "$" + "".join(f'["{name}"]' if "'" in name else f"['{name}']" for name in path)


def shape_of_records(
    spark: SparkSession, options: Mapping[str, str], group: Group, columns: StructType | None = None
) -> Shape | None:
    """Return the shape of the records of files; None if Spark has no VARIANT of one, which is too large.

    Args:
        columns: the columns that need a value. The first records suffice if each part of them has one. Without it, all
            records are read.
    """
    files, own = group
    records = json_records(spark, {**options, **own}, files)
    shape: Shape | None = None
    for some in (records,) if columns is None else (records.limit(_FIRST_ROWS), records):
        known = F.every(F.col(RECORD).isNotNull())
        row = some.agg(F.schema_of_variant_agg(RECORD).alias("shape"), known.alias("is_known")).first()
        shape = parse_shape(row["shape"]) if row and row["is_known"] else None
        if shape is None or (columns is not None and _is_filled(columns, shape)):
            break
    return shape


def too_large_record(spark: SparkSession, options: Mapping[str, str], group: Group) -> str:
    """Return the path of a file with a record that has no VARIANT; empty if there is none."""
    files, own = group
    records = json_records(spark, {**options, **own}, files)
    return next((path_of_address(row[FILE]) for row in records.filter(F.col(RECORD).isNull()).take(1)), "")


def _is_filled(type: DataType, shape: Shape) -> bool:
    """Return True if each part of a type has a value in some record."""
    match type, shape:
        case StructType(), dict():
            return len(type) > 0 and all(_is_filled(each.dataType, shape.get(each.name, False)) for each in type)
        case ArrayType(), [element]:
            return _is_filled(type.elementType, element)
    return has_value(shape)


def may_lack_values(type: DataType) -> bool:
    """Return True if Spark may have inferred a part of a type from no value: a text, or an object without fields."""
    match type:
        case StructType():
            return not len(type) or any(may_lack_values(each.dataType) for each in type)
        case ArrayType():
            return may_lack_values(type.elementType)
    return isinstance(type, StringType)


def parse_shape(text: str) -> Shape:
    """Parse the type of a VARIANT, such as `OBJECT<a: BIGINT, b: ARRAY<VOID>>`."""
    tokens = list(_TOKEN.finditer(text))
    shape, end = _parse(tokens, 0)
    assert end == len(tokens), text
    return shape


def _parse(tokens: Sequence[re.Match[str]], at: int) -> tuple[Shape, int]:
    """Return the shape that begins at a token, and the position after it."""
    kind = tokens[at]["word"]
    if kind not in ("OBJECT", "ARRAY"):
        return kind != "VOID", at + 1
    at += 2
    if kind == "ARRAY":
        element, at = _parse(tokens, at)
        return [element], at + 1
    fields: dict[str, Shape] = {}
    while tokens[at]["mark"] != ">":
        at += tokens[at]["mark"] == ","
        name = tokens[at]["word"] or tokens[at]["quoted"].replace("``", "`")
        fields[name], at = _parse(tokens, at + 2)
    return fields, at + 1


def has_value(shape: Shape) -> bool:
    """Return True if a record has a value other than NULL, `[]` and `{}` somewhere in a shape."""
    match shape:
        case dict():
            return any(map(has_value, shape.values()))
        case list():
            return any(map(has_value, shape))
    return shape


def with_empty_objects(type: DataType, shape: Shape) -> DataType:
    """Return an inferred type with the fields that Spark omits because they are always `{}`."""
    match type, shape:
        case StructType(), dict():
            have = {field.name: field.dataType for field in type}
            types = {name: with_empty_objects(each, shape.get(name, True)) for name, each in have.items()}
            omitted = {name: _omitted(each) for name, each in shape.items() if name not in have}
            types |= {name: kind for name, kind in omitted.items() if kind is not None}
            return StructType([StructField(name, types[name]) for name in sorted(types)])  # the order of Spark
        case ArrayType(), [element]:
            return ArrayType(with_empty_objects(type.elementType, element))
    return type


def _omitted(shape: Shape) -> DataType | None:
    """Return the type of a field that Spark omits because it is always `{}`, or either `{}` or `""`."""
    match shape:
        case dict():
            inner = {name: _omitted(each) for name, each in shape.items()}
            return StructType([StructField(name, type) for name, type in inner.items() if type is not None])
        case [element]:
            type = _omitted(element)
            return None if type is None else ArrayType(type)
    return StringType() if shape else None


def without_guesses(type: DataType, shape: Shape) -> DataType:
    """Return an inferred type with no type for the parts in which no record has a value."""
    match type, shape:
        case StructType(), dict() if len(type):
            fields = [(each.name, each.dataType, shape.get(each.name, True)) for each in type]
            return StructType([StructField(name, without_guesses(each, part)) for name, each, part in fields])
        case ArrayType(), [element]:
            return ArrayType(without_guesses(type.elementType, element))
    return type if has_value(shape) else NullType()


def column_types(schema: StructType) -> tuple[StructType, dict[str, list[str]]]:
    """Return a schema in which a column without any value has no type, and in others such fields are text.

    Returns:
        The schema, and the fields that are text for this reason, by column.
    """
    fields: list[StructField] = []
    as_text: dict[str, list[str]] = {}
    for field in schema:
        paths: list[str] = []
        type = _as_text(field.dataType, field.name, paths)
        if _is_untyped(field.dataType):
            type = NullType()
        elif paths:
            as_text[field.name] = paths
        fields.append(StructField(field.name, type))
    return StructType(fields), as_text


def _is_untyped(type: DataType) -> bool:
    match type:
        case StructType():
            return all(_is_untyped(field.dataType) for field in type)
        case ArrayType():
            return _is_untyped(type.elementType)
    return isinstance(type, NullType)


def _as_text(type: DataType, path: str, paths: list[str]) -> DataType:
    match type:
        case StructType() if len(type):
            return StructType(
                [StructField(each.name, _as_text(each.dataType, f"{path}.{each.name}", paths)) for each in type]
            )
        case ArrayType():
            return ArrayType(_as_text(type.elementType, f"{path}[]", paths))
        case NullType() | StructType():
            paths.append(path)
            return StringType()
    return type
