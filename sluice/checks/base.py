"""What a check is: parameters, what it needs scanned, and how numbers become a finding."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from sluice.facts import TableFacts
from sluice.model import Model

Scope = Literal["added", "table"]
Severity = Literal["fail", "warn"]
Scalar = bool | int | float | str

Numbers = Mapping[str, Any]
"""What a scan found: `rows`, `failed` where bad rows were asked for, and each named aggregate."""


class Finding(Model):
    """The answer to a check before its severity is weighed."""

    passed: bool
    observed: Any
    failed_rows: int | None = None


class Scan(Model):
    """What a check asks of the rows, as data for whichever engine scans them."""

    bad_rows: str | None = None
    """A Spark SQL condition that is true for each row that breaks the check."""
    aggregates: dict[str, str] = Field(default_factory=dict)
    """Spark SQL aggregates over the rows in scope, by the name under which `judge` finds them."""
    keys: list[str] = Field(default_factory=list)
    """Columns whose combined values must not occur twice."""
    null_keys_repeat: bool = False
    """Whether a key that holds a null may occur any number of times."""
    query: str | None = None
    """A query of its own, which returns the bad rows."""
    show: list[str] = Field(default_factory=list)
    """The columns that a sample of bad rows shows first."""


class Check(Model, ABC):
    """Something that must be true of a table before it is published."""

    aliases: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Other names of this check, each with its own names for the parameters."""
    shorthand: ClassVar[str] = "columns"
    """The parameter that a value without keys stands for: `not_null: [a, b]`."""

    check: str
    severity: Severity = "fail"
    scope: Scope = "added"

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """The columns that the table must have for this check to be answered."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What the check demands, for a person."""

    def prove(self, facts: TableFacts) -> Finding | None:
        """Answer from metadata alone, or return None: undecided, ask the rows."""
        return None

    def scan(self, types: Mapping[str, str]) -> Scan:
        """Say what to ask of the rows, given the Iceberg type of each column."""
        raise NotImplementedError(f"{self.check} is always answered from metadata")

    def judge(self, numbers: Numbers) -> Finding:
        """Turn what the scan found into a finding: by default, no bad row may be there."""
        failed = int(numbers["failed"])
        return Finding(passed=failed == 0, observed=failed, failed_rows=failed)

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """Split what a person wrote as one check into the checks that get a verdict each."""
        return [parameters]


class ColumnCheck(Check):
    """A check of one column. Written with several, it becomes one check for each."""

    column: str = Field(min_length=1)

    @property
    def column_names(self) -> list[str]:
        return [self.column]

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> Sequence[dict[str, Any]]:
        if "columns" not in parameters:
            return [parameters]
        names = parameters["columns"]
        rest = {key: value for key, value in parameters.items() if key != "columns"}
        return [{**rest, "column": name} for name in ([names] if isinstance(names, str) else names)]


def between(low: object | None, high: object | None) -> str:
    """Say a range for a person."""
    if low is not None and high is not None:
        return f"between {low} and {high}"
    return f"at least {low}" if low is not None else f"at most {high}"
