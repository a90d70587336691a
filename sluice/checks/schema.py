"""Checks of the table's schema: names and types of columns, and changes since `main`."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sluice.checks.base import Check, Evaluation, between, expand_columns, pass_or_fail, require_range
from sluice.metadata.statistics import SchemaField, StatisticsNeed, TableStatistics

_SYNONYMS = {
    "bigint": "long",
    "integer": "int",
    "smallint": "int",
    "tinyint": "int",
    "bool": "boolean",
    "real": "float",
    "timestamp_ntz": "timestamp",
    "varchar": "string",
    "text": "string",
}
"""Spark's and other names for Iceberg's types. Spark's `timestamp` has a zone: it is Iceberg's timestamptz."""


def iceberg_type(name: str) -> str:
    """Return Iceberg's name of a type, without spaces."""
    plain = name.strip().lower().replace(" ", "")
    return _SYNONYMS.get(plain, plain)


class _SchemaCheck(Check):
    proof = "always"

    @property
    def column_names(self) -> list[str]:
        return []


class Schema(_SchemaCheck):
    """The table must have these columns with these types, and no other columns unless `allow_extra` is set."""

    check: Literal["schema"] = "schema"
    columns: dict[str, str] = Field(min_length=1)
    allow_extra: bool = False

    @property
    def expected(self) -> str:
        listed = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"{'at least ' if self.allow_extra else ''}{listed}"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        problems = [
            f"{name} is {statistics.types[name]}" if name in statistics.types else f"{name} is missing"
            for name, kind in self.columns.items()
            if statistics.types.get(name, "").replace(" ", "") != iceberg_type(kind)
        ]
        if not self.allow_extra:
            problems += [f"{name} is extra" for name in statistics.types if name not in self.columns]
        return pass_or_fail(not problems, "; ".join(problems) or "as stated")


class ColumnType(_SchemaCheck):
    """The column must have this type, or one of these types."""

    aliases = {"expect_column_values_to_be_of_type": {"type_": "type"}}
    check: Literal["column_type"] = "column_type"
    column: str = Field(min_length=1)
    type: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1)]

    @property
    def _types(self) -> list[str]:
        return [self.type] if isinstance(self.type, str) else self.type

    @property
    def column_names(self) -> list[str]:
        return [self.column]

    @property
    def expected(self) -> str:
        return " or ".join(self._types)

    def prove(self, statistics: TableStatistics) -> Evaluation:
        actual = statistics.types[self.column]
        return pass_or_fail(actual.replace(" ", "") in map(iceberg_type, self._types), actual)

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return list(expand_columns(parameters))


class ColumnExists(_SchemaCheck):
    """The table must have these columns, of any type. `position` is that of a single column, from 1."""

    aliases = {"expect_column_to_exist": {"column": "columns"}}
    check: Literal["column_exists"] = "column_exists"
    columns: list[str] | str
    position: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_position(self) -> "ColumnExists":
        if self.position and len(self._wanted) != 1:
            raise ValueError("position needs exactly one column: write a check for each column")
        return self

    @property
    def _wanted(self) -> list[str]:
        return [self.columns] if isinstance(self.columns, str) else self.columns

    @property
    def expected(self) -> str:
        return ", ".join(self._wanted) + (f" as column {self.position}" if self.position else "")

    def prove(self, statistics: TableStatistics) -> Evaluation:
        names = list(statistics.types)
        missing = [name for name in self._wanted if name not in names]
        if missing or not self.position:
            return pass_or_fail(not missing, f"without {', '.join(missing)}" if missing else "all there")
        position = names.index(self._wanted[0]) + 1
        return pass_or_fail(position == self.position, f"column {position}")


class ColumnNames(_SchemaCheck):
    """The table must have exactly these columns, of any type; with `ordered`, in this order."""

    check: Literal["column_names"] = "column_names"
    columns: list[str] = Field(min_length=1)
    ordered: bool = False

    @property
    def expected(self) -> str:
        return f"{', '.join(self.columns)}{' in this order' if self.ordered else ''}"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        names = list(statistics.types)
        problems = [f"{name} is missing" for name in self.columns if name not in names]
        problems += [f"{name} is extra" for name in names if name not in self.columns]
        if self.ordered and not problems and names != self.columns:
            problems = [f"the order is {', '.join(names)}"]
        return pass_or_fail(not problems, "; ".join(problems) or "as stated")


class ColumnAbsent(_SchemaCheck):
    """The table must have none of these columns; `*` stands for any characters, and case makes no difference."""

    check: Literal["column_absent"] = "column_absent"
    columns: list[str] = Field(min_length=1)

    @property
    def expected(self) -> str:
        return f"without {', '.join(self.columns)}"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        unwanted = [
            name
            for name in statistics.types
            if any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.columns)
        ]
        return pass_or_fail(not unwanted, ", ".join(unwanted) or "none of them")

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        names = parameters.get("columns")
        return [{**parameters, "columns": [names]} if isinstance(names, str) else parameters]


class ColumnCount(_SchemaCheck):
    """The number of columns must lie in a range."""

    check: Literal["column_count"] = "column_count"
    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _a_range(self) -> "ColumnCount":
        require_range(self.min, self.max)
        return self

    @property
    def expected(self) -> str:
        return f"{between(self.min, self.max)} columns"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        count = len(statistics.types)
        return pass_or_fail((self.min is None or count >= self.min) and (self.max is None or count <= self.max), count)


class SchemaDrift(_SchemaCheck):
    """The columns must be those of `main`.

    They are compared by field id, so a renamed column is neither added nor removed. A new table passes.
    """

    needs = frozenset({StatisticsNeed.CHANGE})
    shorthand = "allow"

    check: Literal["schema_drift"] = "schema_drift"
    allow: list[Literal["added", "removed", "renamed", "promoted", "required", "optional", "reordered"]] = Field(
        default_factory=list
    )
    """Kinds of change that are allowed."""

    @property
    def expected(self) -> str:
        return "the columns of main" + (f", but for {', '.join(self.allow)}" if self.allow else "")

    def prove(self, statistics: TableStatistics) -> Evaluation:
        if statistics.change.created:
            return pass_or_fail(True, "a new table")
        drift = _drift(statistics.change.fields_before, statistics.change.fields_after)
        unwanted = [words for kind, words in drift if kind not in self.allow]
        return pass_or_fail(not unwanted, "; ".join(unwanted or [words for _, words in drift]) or "unchanged")


def _drift(before: Any, after: Any) -> list[tuple[str, str]]:
    old: Mapping[int, SchemaField] = {field.id: field for field in before}
    new: Mapping[int, SchemaField] = {field.id: field for field in after}
    drift = [("added", f"{field.name} {field.type} is added") for key, field in new.items() if key not in old]
    drift += [("removed", f"{field.name} is removed") for key, field in old.items() if key not in new]
    for key in old.keys() & new.keys():
        was, now = old[key], new[key]
        if was.name != now.name:
            drift.append(("renamed", f"{was.name} is renamed to {now.name}"))
        if was.type != now.type:
            drift.append(("promoted", f"{now.name} was {was.type}, is {now.type}"))
        if was.required != now.required:
            drift.append(
                (
                    "required" if now.required else "optional",
                    f"{now.name} is {'' if now.required else 'no longer '}required",
                )
            )
    order = [key for key in old if key in new], [key for key in new if key in old]
    return drift + ([("reordered", "the columns have another order")] if order[0] != order[1] else [])
