"""Search the values of a column at any depth, in structs, lists and maps."""

from collections.abc import Callable
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Condition = Callable[[Column, DataType], Column | None]
"""A function that returns the condition on a value or map of a type, or None if none of that type meets it."""


def any_value(column: Column, type: DataType, condition: Condition) -> Column | None:
    """Return a column that is true if some value in it meets a condition, or None if no value of its types can."""
    match type:
        case StructType():
            fields = [any_value(column.getField(field.name), field.dataType, condition) for field in type]
            return _any_of(fields)
        case ArrayType():
            return _any_element(column, type.elementType, condition)
        case MapType():
            keys = _any_element(F.map_keys(column), type.keyType, condition)
            values = _any_element(F.map_values(column), type.valueType, condition)
            own = condition(column, type)
            return _any_of([keys, values, None if own is None else F.coalesce(own, F.lit(False))])
    met = condition(column, type)
    return None if met is None else F.coalesce(met, F.lit(False))


def _any_element(elements: Column, type: DataType, condition: Condition) -> Column | None:
    if any_value(F.lit(None), type, condition) is None:
        return None

    def is_met(element: Column) -> Column:
        met = any_value(element, type, condition)
        assert met is not None
        return met

    return F.coalesce(F.exists(elements, is_met), F.lit(False))


def _any_of(conditions: list[Column | None]) -> Column | None:
    stated = [each for each in conditions if each is not None]
    return reduce(or_, stated) if stated else None
