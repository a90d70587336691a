"""Interface of a check: parameters, proof from metadata, query, and evaluation of metrics."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from sluice.base_model import StrictModel
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion
from sluice.metadata.statistics import Scope, StatisticsNeed, TableStatistics
from sluice.sql.dialect import Dialect
from sluice.sql.values import kind_of

ROWS, OTHER_ROWS = "sluice_rows", "sluice_other_rows"
"""The views that a check's query reads: the rows in scope, and the other live rows of the same table."""

BAD_ROWS = "sluice_bad_rows"
"""The column of a grouped query with the number of bad rows in each group."""

Severity = Literal["fail", "warn"]
Level = Literal["pass", "warn", "fail"]

Metrics = Mapping[str, Any]
"""Metrics that a scan computed for a check: `rows`, `failed` if it counts bad rows, and each named aggregate."""


class Evaluation(StrictModel):
    """The result of a check before its severity is applied."""

    level: Level
    observed: Any
    failed_rows: int | None = None

    @property
    def passed(self) -> bool:
        """True if the check passed without a warning."""
        return self.level == "pass"


def pass_or_fail(passed: bool, observed: Any, failed_rows: int | None = None) -> Evaluation:
    """Return an evaluation that is either `pass` or `fail`."""
    return Evaluation(level="pass" if passed else "fail", observed=observed, failed_rows=failed_rows)


def judge_size(observed: Any, *, too_few: bool, too_many: bool, requeued: bool) -> Evaluation:
    """Evaluate the size of what a run adds against its bounds.

    A lower bound shows that a batch is complete. It is not applied to a requeue, which adds only a few rows of earlier
    batches; the observed text says so if the bound would have failed.
    """
    if too_few and requeued:
        return pass_or_fail(not too_many, f"{observed} (the lower bound is not applied to a requeue)")
    return pass_or_fail(not too_few and not too_many, observed)


class TableReference(StrictModel):
    """Another table that a check reads, on the audited branch or on `main` at the run's base."""

    table: str
    ref: Literal["branch", "main"] = "branch"
    columns: list[str] = Field(default_factory=list)

    @property
    def key(self) -> str:
        """Its key in `TableStatistics.referenced_rows`: `name`, or `name@main`."""
        return self.table if self.ref == "branch" else f"{self.table}@main"

    @property
    def view(self) -> str:
        """The view through which a query reads its rows."""
        return "sluice_table_" + hashlib.sha256(self.key.encode()).hexdigest()[:12]


class CheckQuery(StrictModel):
    """The metrics that one check needs from an engine, in that engine's SQL over the views of a scan."""

    bad: str | None = None
    """A condition that is true for each bad row."""
    where: str | None = None
    """The condition of `where`, if the evaluation needs the number of rows that satisfy it."""
    aggregates: dict[str, str] = Field(default_factory=dict)
    """Aggregates over the rows in scope, by the name of the metric."""
    distinct: dict[str, str] = Field(default_factory=dict)
    """Expressions whose distinct values are counted, by the name of the metric."""
    groups: str | None = None
    """A query that returns groups of bad rows, with the number of rows of each as `BAD_ROWS`."""
    groups_with_other_rows: str | None = None
    """The same query over the added and the other live rows of the table; it reads `OTHER_ROWS` too."""
    group_keys: list[str] = Field(default_factory=list)
    """Columns that identify a group. A sample shows the rows of bad groups, or the groups if this is empty."""
    key: str | None = None
    """The column whose bounds select the files of `OTHER_ROWS` and of the referenced table."""
    nulls_match: bool = False
    """True if a null key equals another null key.

    Bounds do not cover nulls: if the files in scope may contain nulls, no other file is left out.
    """
    user_query: str | None = None
    """The query of a check `sql`, which returns the bad rows."""
    columns: list[str] = Field(default_factory=list)
    """The columns that it reads of the rows in scope."""
    reference: TableReference | None = None
    show: list[str] = Field(default_factory=list)
    """The columns that a sample of bad rows shows first."""


class Check(StrictModel, ABC):
    """A condition that a table must meet before it is published."""

    aliases: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Other names of this check, each with its own names for the parameters."""
    shorthand: ClassVar[str] = "columns"
    """The parameter that a value without keys sets: `not_null: [a, b]`."""
    needs: ClassVar[frozenset[StatisticsNeed]] = frozenset()
    """Statistics that it needs in addition to the added files and the column types."""
    proof: ClassVar[str] = "never"
    """The condition under which metadata alone answers it, for the list of checks."""
    row_level: ClassVar[bool] = False
    """True if each row passes or fails, so that bad rows can be quarantined."""
    observes_values: ClassVar[bool] = False
    """True if it observes a value of rows or a result computed from values, not a count, a name or a share."""

    check: str
    severity: Severity = "fail"
    scope: Scope = "added"
    waivable: bool = False
    """True if people may waive it when it fails: see `sluice/approval/waivable.py`."""
    at: str = ""
    """Its location in the pipeline file, as `file:line`."""

    @model_serializer(mode="wrap")
    def _without_default_waivable(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out `waivable` if it is false: a pipeline with many checks has to fit into a message of Temporal."""
        fields: dict[str, Any] = serialize(self)
        if not self.waivable:
            fields.pop("waivable", None)
        return fields

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """The columns that the table must have."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """The expectation, as a report shows it."""

    @property
    def reference(self) -> TableReference | None:
        """The other table that its query reads, if any."""
        return None

    @property
    def references(self) -> list[TableReference]:
        """All other tables that must exist."""
        return [self.reference] if self.reference else []

    @property
    def tables_read(self) -> list[str]:
        """The other tables that it reads, by the names that it uses.

        If main changes one of them before the merge, the check is answered again.
        """
        return [each.table for each in self.references]

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        """Return the reasons why the types of its columns, which all exist, do not suit the check."""
        return []

    def statistics_problem(self, statistics: TableStatistics) -> str | None:
        """Return the reason why this table lacks statistics that the check needs, or None."""
        return None

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        """Evaluate the check from metadata alone, or return None if only the rows can answer it."""
        return None

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        """Build the query that computes the check's metrics, given the Iceberg type of each column.

        Raises:
            NeedsSpark: the dialect cannot express it with exactly the meaning of Spark SQL.
        """
        raise NotImplementedError(f"{self.check} is always answered from metadata")

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        """Evaluate the metrics of a scan: by default, the check passes if there is no bad row."""
        failed = int(metrics["failed"])
        return pass_or_fail(failed == 0, failed, failed)

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """Split one check of a pipeline file into checks with one verdict each."""
        return [parameters]


def expand_columns(parameters: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """Split a check on several columns into one check for each column.

    Raises:
        InvalidPipeline: it names no columns.
    """
    if "columns" not in parameters:
        return [parameters]
    names = parameters["columns"]
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
        raise InvalidPipeline(f"{str(names)[:100]!r} names no columns: write a column, or a list as in [a, b]")
    if "column" in parameters:
        raise InvalidPipeline("give column or columns, not both")
    others = {key: value for key, value in parameters.items() if key != "columns"}
    return [{**others, "column": name} for name in listed]


def type_problem(column: str, types: Mapping[str, str], kinds: Sequence[str]) -> list[str]:
    """Return a message if the type of a column is none of these kinds, else an empty list."""
    if not kinds or kind_of(types[column]) in kinds:
        return []
    return [
        f"{column!r} is {types[column]}, and this check is for "
        f"{', '.join(kinds[:-1])}{' or ' * (len(kinds) > 1)}{kinds[-1]}"
    ]


_NESTED = ("struct", "list", "map")


def missing_columns(check: Check, types: Mapping[str, str]) -> list[str]:
    """Return a message for each column of a check that the table does not have."""
    return [_missing_column(name, types) for name in check.column_names if name not in types]


def _missing_column(name: str, types: Mapping[str, str]) -> str:
    outer = name.partition(".")[0]
    if outer != name and types.get(outer, "").startswith(_NESTED):
        return (
            f"{name!r} is a field of the column {outer!r}, and checks take whole columns: make it a column by a "
            "transform"
        )
    return f"there is no column {name!r}{suggestion(name, types)}"


def check_problems(check: Check, types: Mapping[str, str]) -> list[str]:
    """Return the reasons why a check cannot be applied to a table with these columns; empty if it can."""
    return missing_columns(check, types) or check.type_problems(types)


def check_location(check: Check) -> str:
    """Return the file, line and name of a check, as the beginning of a message."""
    return f"{check.at + ': ' if check.at else ''}{check.check}: "


def between(low: object | None, high: object | None) -> str:
    """Describe a range: `between 1 and 5`, `at least 1`, `at most 5`."""
    if low is not None and high is not None:
        return f"between {low} and {high}"
    return f"at least {low}" if low is not None else f"at most {high}"


def require_range(low: Any, high: Any) -> None:
    """Check that two bounds form a range.

    Raises:
        ValueError: both are missing, or the lower is above the upper.
    """
    if low is None and high is None:
        raise ValueError("give min, max or both")
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        raise ValueError(f"min {low} is above max {high}")
