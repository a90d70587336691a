"""Types of Iceberg that store every value of another type."""

from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, IcebergType, ListType, MapType, StructType

_EXACT = {
    ("int", "long"),
    ("int", "double"),
    ("float", "double"),
    ("date", "timestamp"),
    ("date", "timestamptz"),
    ("string", "uuid"),  # Spark, which makes the quarantine tables, has neither type, and refuses another value
    ("binary", "fixed"),
}
"""Pairs of types: the second stores every value of the first, or Spark refuses the value."""


def inexact_columns(have: Schema, wanted: Schema) -> list[str]:
    """Return the columns of both schemas whose values the wanted type may not store as they are."""
    types = {field.name: field.field_type for field in wanted.fields}
    common = [field for field in have.fields if field.name in types]
    return [field.name for field in common if not _is_exact(field.field_type, types[field.name])]


def _is_exact(have: IcebergType, wanted: IcebergType) -> bool:
    match have, wanted:
        case StructType(), StructType():
            if [field.name for field in have.fields] != [field.name for field in wanted.fields]:
                return False
            pairs = zip(have.fields, wanted.fields, strict=True)
            return all(_is_exact(own.field_type, other.field_type) for own, other in pairs)
        case ListType(), ListType():
            return _is_exact(have.element_type, wanted.element_type)
        case MapType(), MapType():
            return _is_exact(have.key_type, wanted.key_type) and _is_exact(have.value_type, wanted.value_type)
        case DecimalType(), DecimalType():
            whole_digits = have.precision - have.scale
            return have.scale <= wanted.scale and whole_digits <= wanted.precision - wanted.scale
    return have == wanted or (str(have), str(wanted).partition("[")[0]) in _EXACT
