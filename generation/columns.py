"""Columns of generated rows, from a schema, a table, or the checks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sluice.checks.base import Check
from sluice.checks.schema import ColumnType, Schema, iceberg_type
from sluice.errors import InvalidPipeline
from sluice.sql.values import kind_of

NOT_NESTED = ("boolean", "int", "long", "float", "double", "decimal", "date", "timestamp", "timestamptz", "string")
"""The kinds of columns for which values are generated."""
_SMALL = {"tinyint": 2**7 - 1, "byte": 2**7 - 1, "smallint": 2**15 - 1, "short": 2**15 - 1}
"""Spark's types of small whole numbers, each with its largest value."""
_SPARK_TYPES = {
    "bool": "boolean", "integer": "int", "tinyint": "int", "byte": "int", "smallint": "int", "short": "int",
    "bigint": "long", "real": "float", "dec": "decimal", "numeric": "decimal", "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz", "timestamp_ntz": "timestamp", "varchar": "string", "char": "string",
    "character": "string", "text": "string",
}  # fmt: skip
"""Names of types in Spark SQL, each with Iceberg's name."""
_DUCKDB_TYPES = {
    "integer": "int", "bigint": "long", "varchar": "string", "timestamp with time zone": "timestamptz",
    "blob": "binary",
}  # fmt: skip
_TEXT_CHECKS = {
    *("not_empty_string", "match_regex", "not_match_regex", "match_like", "not_match_like", "valid_format"),
    "string_length",
}
_TIME_CHECKS = {"freshness": "timestamptz", "row_per_date_part": "timestamptz"}
_NUMBER_CHECKS = {"mean_in_range", "sum_in_range", "stddev_in_range", "quantile_in_range", "not_nan"}


@dataclass(frozen=True)
class Column:
    """A column of generated rows."""

    name: str
    type: str
    """The Iceberg type."""
    required: bool = False
    """True if the schema says NOT NULL."""
    largest: int | None = None
    """The largest whole number, if the type in the schema has a smaller range than Iceberg's."""
    length: int | None = None
    """Maximum length of a string, in characters, if the type in the schema states it."""

    @cached_property
    def kind(self) -> str:
        """The type without its parameters."""
        return kind_of(self.type)


@dataclass(frozen=True)
class TableShape:
    """The columns of the rows, and their origin."""

    columns: Sequence[Column]
    origin: str
    """The source that states the columns, for a person."""
    is_stated: bool = True
    """True if the types are stated, not derived from checks."""
    dates: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    """Dates that the pipeline computes from the columns of a year, a month and a day, by name."""
    computed: Sequence[str] = ()
    """Columns that the pipeline computes in other ways. Their values are not known."""

    @property
    def types(self) -> dict[str, str]:
        """The Iceberg type of each column, including computed dates."""
        return {**{each.name: each.type for each in self.columns}, **dict.fromkeys(self.dates, "date")}


DEFAULT_SHAPE = TableShape(
    [Column("my_col_0", "int"), Column("my_col_1", "string"), Column("my_col_2", "double")], "no pipeline"
)
"""The columns of rows that are generated without a pipeline."""


def columns_of_schema(schema: str) -> list[Column]:
    """Return the columns of a valid `source.schema`.

    Raises:
        InvalidPipeline: one of its types is not supported.
    """
    import sqlglot  # noqa: PLC0415  # slow to import
    from sqlglot import exp  # noqa: PLC0415

    statement = sqlglot.parse_one(f"CREATE TABLE t ({schema})", dialect="spark")
    return [_column_of(each) for each in statement.find_all(exp.ColumnDef) if each.parent is statement.this]


def _column_of(definition: Any) -> Column:
    from sqlglot import exp  # noqa: PLC0415

    written = definition.kind.sql(dialect="spark").lower()
    name, parameters = kind_of(written), [int(each.name) for each in definition.kind.expressions if each.name.isdigit()]
    constraints = definition.args.get("constraints") or []
    required = any(isinstance(each.kind, exp.NotNullColumnConstraint) for each in constraints)
    kind = _SPARK_TYPES.get(name, name)
    if kind == "decimal":
        precision, scale = [*parameters, *([10, 0][len(parameters) :])]
        kind = f"decimal({precision}, {scale})"
    length = parameters[0] if kind == "string" and parameters else None
    return _known(Column(definition.name, kind, required, _SMALL.get(name), length))


def columns_of_table(types: Mapping[str, str]) -> list[Column]:
    """Return the columns of a table, given DuckDB's name for the type of each.

    Raises:
        InvalidPipeline: one of the types is not supported.
    """
    return [_known(Column(name, _iceberg(kind))) for name, kind in types.items()]


def _iceberg(duckdb_type: str) -> str:
    lower = duckdb_type.lower()
    return (
        _DUCKDB_TYPES.get(lower, lower).replace(",", ", ")
        if lower.startswith("decimal")
        else _DUCKDB_TYPES.get(lower, lower)
    )


def _known(column: Column) -> Column:
    if column.kind not in NOT_NESTED:
        raise InvalidPipeline(f"the column {column.name!r} is {column.type}, and no values of that type are generated")
    return column


def columns_of_checks(checks: Iterable[Check]) -> list[Column]:
    """Return the columns that checks name, each with a type that suits these checks."""
    types: dict[str, str] = {}
    for check in checks:
        if isinstance(check, Schema):
            types |= {name: iceberg_type(kind) for name, kind in check.columns.items()}
        elif isinstance(check, ColumnType):
            types[check.column] = iceberg_type(check.type if isinstance(check.type, str) else check.type[0])
        for name in check.column_names:
            types[name] = types.get(name) or _type_by(check, name)
    plain = {name: kind or "long" for name, kind in types.items()}
    return [_known(Column(name, kind)) for name, kind in plain.items()]


def _type_by(check: Check, name: str) -> str:
    """Return the type that a check suggests for one of its columns; empty if any type suits it."""
    if name != getattr(check, "column", name):
        return ""
    if check.check in _TEXT_CHECKS:
        return "string"
    if check.check in _TIME_CHECKS:
        return _TIME_CHECKS[check.check]
    values = [*getattr(check, "values", ()), getattr(check, "min", None), getattr(check, "max", None)]
    counted = check.check in ("distinct_count", "distinct_ratio", "not_null_proportion", "row_count")
    suggested = "" if counted else _type_of_values([each for each in values if each is not None])
    return "double" if check.check in _NUMBER_CHECKS else suggested


def _type_of_values(values: Sequence[object]) -> str:
    if not values:
        return ""
    if all(isinstance(each, bool) for each in values):
        return "boolean"
    if all(isinstance(each, int) for each in values):
        return "long"
    if all(isinstance(each, int | float) for each in values):
        return "double"
    texts = [str(each) for each in values]
    if all(len(each) == 10 and each[4:5] == each[7:8] == "-" and each.replace("-", "").isdigit() for each in texts):
        return "date"
    return "string"
