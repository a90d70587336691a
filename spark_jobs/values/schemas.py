"""Compare, merge and change the schemas of files: lost fields, a common schema, and replaced types."""

from collections import Counter
from collections.abc import Iterator, Sequence

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from sluice.errors import InvalidInput
from sluice.identifiers import quoted

STATE_TYPE = "name its type in source.schema"
_MAX_PRECISION = 38


def lost_fields(have: DataType, wanted: DataType, path: str = "") -> list[str]:
    """Return the fields that reading a value as another type would drop, in the form `a.b`, `list[].c`."""
    match have, wanted:
        case StructType(), StructType():
            return _lost_of_struct(have, wanted, path)
        case ArrayType(), ArrayType():
            return lost_fields(have.elementType, wanted.elementType, f"{path}[]")
        case MapType(), MapType():
            return lost_fields(have.valueType, wanted.valueType, f"{path}[]")
        case StructType(), MapType():  # JSON has no maps, so Spark inferred a field for each key
            values = [lost_fields(field.dataType, wanted.valueType, f"{path}[]") for field in have]
            return list(dict.fromkeys(name for names in values for name in names))
    return []  # text can represent any value, and a value of another type fails the read


def _lost_of_struct(have: StructType, wanted: StructType, path: str) -> list[str]:
    by_name = {field.name.lower(): field for field in wanted}
    lost = []
    for field in have:
        name = f"{path}.{field.name}" if path else field.name
        other = by_name.get(field.name.lower())
        lost += [name] if other is None else lost_fields(field.dataType, other.dataType, name)
    return lost


def field_paths(type: DataType, path: str = "") -> Iterator[str]:
    """Yield the paths of the columns and fields of a schema, at any depth, in the form `a.b`, `list[].c`."""
    match type:
        case StructType():
            for field in type:
                name = f"{path}.{field.name}" if path else field.name
                yield name
                yield from field_paths(field.dataType, name)
        case ArrayType():
            yield from field_paths(type.elementType, f"{path}[]")
        case MapType():
            yield from field_paths(type.valueType, f"{path}[]")


def ambiguous_name(schema: StructType) -> str | None:
    """Return a name such as `a.b` that two columns or fields have if their dots are ignored, or None.

    One of them has a dot in its own name. Iceberg cannot tell the two apart.
    """
    paths = [field.name for field in schema]
    paths += [path for field in schema for path in _paths_below(field.dataType, field.name)]
    return next((path for path, number in Counter(paths).items() if number > 1), None)


def _paths_below(type: DataType, path: str) -> list[str]:
    match type:
        case StructType():
            inner = [(f"{path}.{field.name}", field.dataType) for field in type]
        case ArrayType():
            inner = [(f"{path}.element", type.elementType)]
        case MapType():
            inner = [(f"{path}.key", type.keyType), (f"{path}.value", type.valueType)]
        case _:
            return []
    return [each for below, of in inner for each in (below, *_paths_below(of, below))]


def replace_types(field: StructField, replaced: tuple[type[DataType], ...], by: DataType) -> StructField:
    """Return a field with another type in place of some types, at any depth."""
    return StructField(field.name, _replaced(field.dataType, replaced, by), field.nullable, field.metadata)


def _replaced(given: DataType, replaced: tuple[type[DataType], ...], by: DataType) -> DataType:
    match given:
        case StructType():
            return StructType([replace_types(field, replaced, by) for field in given])
        case ArrayType():
            return ArrayType(_replaced(given.elementType, replaced, by), given.containsNull)
        case MapType():
            return MapType(given.keyType, _replaced(given.valueType, replaced, by), given.valueContainsNull)
    return by if isinstance(given, replaced) else given


def merged_schema(schemas: Sequence[StructType]) -> StructType:
    """Return a schema that can represent every row of several groups of files.

    Raises:
        InvalidInput: there is no such schema.
    """
    schema: DataType = schemas[0]
    for other in schemas[1:]:
        schema = merged(schema, other)
    assert isinstance(schema, StructType)
    return schema


def merged(
    left: DataType, right: DataType, path: str = "", *, widens: bool = True, advice: str = STATE_TYPE
) -> DataType:
    """Return a type that can represent every value of two types.

    Args:
        path: the name of the column.
        widens: True if the result may be a third type, or the wider one of two types of numbers.
        advice: what the user should do if there is no such type.

    Raises:
        InvalidInput: there is no such type.
    """

    def inner(left: DataType, right: DataType, path: str) -> DataType:
        return merged(left, right, path, widens=widens, advice=advice)

    if left == right or isinstance(right, NullType):
        return left
    if isinstance(left, NullType):
        return right
    match left, right:
        case StructType(), StructType():
            others = {field.name: field for field in right}
            fields = []
            for field in left:
                other = others.pop(field.name, field)
                name = f"{path}.{field.name}" if path else field.name
                fields.append(StructField(field.name, inner(field.dataType, other.dataType, name)))
            return StructType([*fields, *others.values()])
        case ArrayType(), ArrayType():
            return ArrayType(inner(left.elementType, right.elementType, f"{path}[]"))
        case DecimalType(), DecimalType() if widens:
            scale = max(left.scale, right.scale)
            precision = scale + max(left.precision - left.scale, right.precision - right.scale)
            if precision <= _MAX_PRECISION:
                return DecimalType(precision, scale)
    types = {type(left), type(right)}
    if widens and types <= {FloatType, DoubleType, *IntegralType.__subclasses__()}:
        return DoubleType() if types & {FloatType, DoubleType} else max(left, right, key=_width)
    raise InvalidInput(f"{path} is {left.simpleString()} in some files and {right.simpleString()} in others: {advice}")


def promotions(have: DataType, wanted: DataType, path: str) -> Iterator[tuple[str, DataType]]:
    """Yield the columns and fields whose types Iceberg can change from one schema to another, with the new types.

    Source: the Iceberg table specification, section "Schema Evolution".

    Args:
        path: the quoted name of the column.
    """
    match have, wanted:
        case StructType(), StructType():
            by_name = {field.name.lower(): field.dataType for field in have}
            for field in wanted:
                own = by_name.get(field.name.lower(), field.dataType)
                yield from promotions(own, field.dataType, f"{path}.{quoted(field.name)}")
        case ArrayType(), ArrayType():
            yield from promotions(have.elementType, wanted.elementType, f"{path}.element")
        case MapType(), MapType():
            yield from promotions(have.valueType, wanted.valueType, f"{path}.value")
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            yield path, wanted
        case DecimalType(), DecimalType() if have.scale == wanted.scale and have.precision < wanted.precision:
            yield path, wanted


def sql_type(type: DataType) -> str:
    """Return a type as SQL. Names of fields are quoted, since they come from files and may contain SQL."""
    match type:
        case StructType():
            return f"STRUCT<{', '.join(f'{quoted(field.name)}: {sql_type(field.dataType)}' for field in type)}>"
        case ArrayType():
            return f"ARRAY<{sql_type(type.elementType)}>"
        case MapType():
            return f"MAP<{sql_type(type.keyType)}, {sql_type(type.valueType)}>"
    return type.simpleString()


def _width(type: DataType) -> int:
    return ["tinyint", "smallint", "int", "bigint"].index(type.simpleString())
