"""Expectations about the columns of a table: their existence, order and types."""

from typing import Any

from importing.arguments import Arguments
from importing.drafts import Draft, Target, native
from importing.expectations.values import column_of, expectation
from importing.imported import NotCarriedOver
from importing.sql_text import number, plain_name


@expectation("expect_table_column_count_to_be_between")
def _column_count(args: Arguments, target: Target) -> Draft:
    bounds = args.range().as_whole_numbers
    if bounds is None:
        raise NotCarriedOver("the bounds are not numbers")
    return Draft(native=native("column_count", **bounds))


@expectation("expect_table_column_count_to_equal")
def _column_count_equal(args: Arguments, target: Target) -> Draft:
    value = number(args.required("value"))
    return Draft(native=native("column_count", min=value, max=value))


@expectation("expect_table_columns_to_match_set", "expect_table_columns_to_match_ordered_list")
def _columns(args: Arguments, target: Target) -> Draft:
    ordered, exact = str(args.required("expectation")).endswith("list"), args.flag("exact_match", True)
    columns = [str(each) for each in args.listed("column_list", "column_set")]
    args.ignore("transform")
    if not exact:
        return Draft(native=native("column_exists", columns=columns))
    return Draft(native=native("column_names", columns=columns, ordered=ordered or None))


@expectation("expect_table_columns_to_contain_set")
def _columns_contain(args: Arguments, target: Target) -> Draft:
    args.ignore("transform")
    return Draft(native=native("column_exists", columns=[str(each) for each in args.listed("column_list")]))


@expectation("expect_table_columns_to_not_contain_set")
def _columns_absent(args: Arguments, target: Target) -> Draft:
    args.ignore("transform")
    return Draft(native=native("column_absent", columns=[str(each) for each in args.listed("column_list")]))


@expectation("expect_column_to_exist")
def _column_exists(args: Arguments, target: Target) -> Draft:
    column, position = column_of(args), args.take("column_index")
    args.ignore("transform")
    return Draft(native=native("column_exists", columns=[plain_name(column) or column], position=position))


@expectation("expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list")
def _type(args: Arguments, target: Target) -> Draft:
    column = column_of(args)
    types = args.listed("column_type_list", "type_list", "column_type", "type_")
    return Draft(native=native("column_type", column=plain_name(column) or column, type=column_types(types)))


def column_types(names: list[Any]) -> str | list[str]:
    """Convert names of types in many systems to Iceberg's. Unknown names are dropped if any name is known.

    Raises:
        NotCarriedOver: no name is known.
    """
    known = dict.fromkeys(kind for name in names for kind in iceberg_types(str(name)))
    if not known:
        raise NotCarriedOver(f"{', '.join(map(str, names))} is not a type that Iceberg has")
    return next(iter(known)) if len(known) == 1 else list(known)


_TYPES = {
    "boolean": "bool boolean booleantype bool_ logical",
    "int": "int integer int32 int4 int2 int16 int8 smallint tinyint integertype shorttype bytetype mediumint number",
    "long": "bigint int64 int8 long longtype int64_ integer int numeric number",
    "float": "float float32 float4 real floattype",
    "double": "double float64 float8 float doubletype double_precision number",
    "string": "string str text varchar char character nvarchar stringtype object bpchar character_varying clob",
    "date": "date datetype",
    "timestamp": "timestamp timestamp_ntz datetime datetime2 timestamptype timestamp_without_time_zone",
    "timestamptz": "timestamp timestamptz timestamp_tz timestamp_ltz timestamptype timestamp_with_time_zone datetime64",
    "binary": "binary bytes blob bytea varbinary binarytype",
    "uuid": "uuid",
    "time": "time",
}
"""Names of each Iceberg type in other systems. A name may mean several types, depending on the system."""


def iceberg_types(name: str) -> list[str]:
    """Return the Iceberg types that a type name of another system may mean."""
    plain = "_".join(name.strip().lower().replace('"', "").split())
    base, _, rest = plain.partition("(")
    if base in ("decimal", "numeric", "number", "decimaltype") and rest:
        precision, _, scale = rest.rstrip(")").partition(",")
        return [f"decimal({precision.strip('_') or 38},{scale.strip('_') or 0})"]
    return [kind for kind, names in _TYPES.items() if base in names.split()]
