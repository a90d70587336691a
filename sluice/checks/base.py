"""What a check is: parameters, proofs from metadata, what it asks of the rows, and how numbers become a finding."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from sluice.audit.statistics import Scope, TableStatistics
from sluice.base_model import Model
from sluice.identifiers import suggestion
from sluice.sql.dialect import Dialect
from sluice.sql.values import kind_of

ROWS, REST = "sluice_rows", "sluice_rest"
"""The views under which a question finds the rows in scope, and the other live rows of the table."""

BAD_ROWS = "sluice_bad_rows"
"""The column by which a query of groups says how many bad rows each stands for."""

Severity = Literal["fail", "warn"]
Level = Literal["pass", "warn", "fail"]

Numbers = Mapping[str, Any]
"""What a scan found: `rows`, `failed` where bad rows were asked for, and each named aggregate."""


class Finding(Model):
    """The answer to a check before its severity is weighed."""

    level: Level
    observed: Any
    failed_rows: int | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong at all."""
        return self.level == "pass"


def passed_if(good: bool, observed: Any, failed_rows: int | None = None) -> Finding:
    """Return a finding of two levels."""
    return Finding(level="pass" if good else "fail", observed=observed, failed_rows=failed_rows)


class Other(Model):
    """Another table that a check looks at: at the audited hash of the branch, or at main as the run found it."""

    table: str
    ref: Literal["branch", "main"] = "branch"
    columns: list[str] = Field(default_factory=list)

    @property
    def key(self) -> str:
        """Its name in `TableFacts.others`."""
        return self.table if self.ref == "branch" else f"{self.table}@main"

    @property
    def view(self) -> str:
        """The view under which a question finds its rows."""
        return "sluice_other_" + hashlib.sha256(self.key.encode()).hexdigest()[:12]


class CheckQuery(Model):
    """What a check asks of the rows, in the SQL of one engine, over the views `ROWS`, `REST` and of others."""

    bad: str | None = None
    """A condition that is true for each row that breaks the check."""
    where: str | None = None
    """A condition for the rows that the check is about, where its judgement needs their number."""
    aggregates: dict[str, str] = Field(default_factory=dict)
    """Aggregates over the rows in scope, by the name under which `judge` finds them."""
    distinct: dict[str, str] = Field(default_factory=dict)
    """Expressions whose distinct values are to be counted, likewise."""
    groups: str | None = None
    """A query that returns groups of bad rows, with their number as `BAD_ROWS`."""
    groups_with_rest: str | None = None
    """The same where there are other live rows that could matter."""
    key: str | None = None
    """The column by whose bounds files of the rest and of the other table can be left out."""
    null_keys: bool = False
    """Whether a null key equals another: then bounds, which say nothing of nulls, leave nothing out."""
    query: str | None = None
    """A query of the user's own on the branch, which returns the bad rows."""
    columns: list[str] = Field(default_factory=list)
    """The columns of the rows in scope that it needs."""
    other: Other | None = None
    show: list[str] = Field(default_factory=list)
    """The columns that a sample of bad rows shows first."""


class Check(Model, ABC):
    """Something that must be true of a table before it is published."""

    aliases: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Other names of this check, each with its own names for the parameters."""
    shorthand: ClassVar[str] = "columns"
    """The parameter that a value without keys stands for: `not_null: [a, b]`."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """What it needs to know beyond files and types: `change`, `partitions`, `volumes`, `others`, `rest`."""
    proof: ClassVar[str] = "never"
    """When metadata alone answers it, for the list of checks."""
    row_level: ClassVar[bool] = False
    """Whether it is about rows one by one, so that the bad ones can be set apart."""

    check: str
    severity: Severity = "fail"
    scope: Scope = "added"
    at: str = ""
    """Where it is written, as `file:line`."""

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """The columns that the table must have for this check to be answered."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What the check demands, for a person."""

    @property
    def other(self) -> Other | None:
        """The other table that its question is about, if any."""
        return None

    @property
    def others(self) -> list[Other]:
        """Every other table that must be there."""
        return [self.other] if self.other else []

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        """Say which of its columns, all of them there, are of a type that it is not for."""
        return []

    def prove(self, facts: TableStatistics) -> Finding | None:
        """Answer from metadata alone, or return None: undecided, ask the rows."""
        return None

    def question(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        """Say what to ask of the rows, given the Iceberg type of each column.

        Raises:
            NeedsSpark: the dialect cannot say it so that it means what Spark would understand.
        """
        raise NotImplementedError(f"{self.check} is always answered from metadata")

    def judge(self, numbers: Numbers, facts: TableStatistics) -> Finding:
        """Turn what the scan found into a finding: by default, no bad row may be there."""
        failed = int(numbers["failed"])
        return passed_if(failed == 0, failed, failed)

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """Split what a person wrote as one check into the checks that get a verdict each."""
        return [parameters]


def each_column(parameters: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """Split a check of several columns into one for each."""
    if "columns" not in parameters:
        return [parameters]
    names = parameters["columns"]
    rest = {key: value for key, value in parameters.items() if key != "columns"}
    return [{**rest, "column": name} for name in ([names] if isinstance(names, str) else names)]


def wrong_kind(column: str, types: Mapping[str, str], kinds: Sequence[str]) -> list[str]:
    """Say that a column is of none of these kinds, if it is so."""
    if not kinds or kind_of(types[column]) in kinds:
        return []
    return [
        f"{column!r} is {types[column]}, and this is for {', '.join(kinds[:-1])}{' or ' * (len(kinds) > 1)}{kinds[-1]}"
    ]


def missing_columns(check: Check, types: Mapping[str, str]) -> list[str]:
    """Say which of a check's columns the table does not have."""
    return [f"there is no column {name!r}{suggestion(name, types)}" for name in check.column_names if name not in types]


def misfits(check: Check, types: Mapping[str, str]) -> list[str]:
    """Say why a check cannot be asked of a table with these columns; empty if it can."""
    return missing_columns(check, types) or check.type_problems(types)


def place(check: Check) -> str:
    """Return where a check is written and which it is, as a message begins."""
    return f"{check.at + ': ' if check.at else ''}{check.check}: "


def between(low: object | None, high: object | None) -> str:
    """Say a range for a person."""
    if low is not None and high is not None:
        return f"between {low} and {high}"
    return f"at least {low}" if low is not None else f"at most {high}"


def a_range(low: Any, high: Any) -> None:
    """Make sure that two bounds are a range.

    Raises:
        ValueError: both are left out, or the lower is above the upper.
    """
    if low is None and high is None:
        raise ValueError("give min, max or both")
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        raise ValueError(f"min {low} is above max {high}")
