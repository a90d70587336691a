"""The two dialects in which a check is asked. What is not certain to mean the same in both is Spark's.

Spark SQL is the reference: sessions of Sluice's jobs run in ANSI mode and in UTC. Where DuckDB means
something else, its dialect either writes what Spark means or raises `NeedsSpark`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sluice.identifiers import literal, quoted
from sluice.sql import regex
from sluice.sql.expression import to_duckdb
from sluice.sql.values import FLOATS, kind_of


class NeedsSpark(Exception):
    """Raised when a question cannot be put to DuckDB so that it means what Spark would understand."""


class Dialect(ABC):
    """How one engine writes what the checks ask."""

    name: str
    separate_distinct: bool
    """Whether distinct counts are dearer inside a pass than by themselves."""

    @abstractmethod
    def column(self, name: str) -> str:
        """Quote a column's name."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Write a text."""

    @abstractmethod
    def matches(self, column: str, pattern: str) -> str:
        """Say that a text matches a regular expression somewhere."""

    @abstractmethod
    def own(self, expression: str, types: Mapping[str, str]) -> str:
        """Translate a condition that a person wrote in Spark SQL."""

    @abstractmethod
    def quantile(self, column: str, share: float) -> str:
        """Aggregate the exact quantile, interpolated between its neighbours."""

    @abstractmethod
    def time(self, value: datetime) -> str:
        """Write a time, with or without a zone."""

    def part(self, unit: str, column: str) -> str:
        """Cut a time down to the beginning of its hour, day, week, month, quarter or year."""
        return f"date_trunc({self.text(unit)}, {column})"

    @abstractmethod
    def microseconds(self, column: str, kind: str) -> str:
        """Count the microseconds since 1970 of a time, or the days of a date."""

    def value(self, value: Any) -> str:
        """Write a value that `values.typed` returned."""
        if isinstance(value, bool | int):
            return str(value).upper()
        if isinstance(value, float):
            return repr(value) if "e" in repr(value) else f"{value!r}e0"
        if isinstance(value, Decimal):
            return f"{value:f}"
        if isinstance(value, datetime):
            return self.time(value)
        return f"DATE '{value.isoformat()}'" if isinstance(value, date) else self.text(str(value))

    def like(self, column: str, pattern: str) -> str:
        """Say that a text is like a pattern, whose escape is the backslash."""
        return f"{column} LIKE {self.text(pattern)} ESCAPE {self.text(chr(92))}"

    def is_nan(self, column: str, kind: str) -> str:
        """Say that a value is not a number; only floats can be that."""
        return f"isnan({column})" if kind_of(kind) in FLOATS else "FALSE"

    def count_if(self, condition: str) -> str:
        """Count the rows for which a condition is true, as a whole number even of no rows."""
        return f"CAST(coalesce(count_if({condition}), 0) AS BIGINT)"

    def total(self, column: str, kind: str) -> str:
        """Add up without overflow."""
        exact = {"long": "DECIMAL(38, 0)", "int": "DECIMAL(38, 0)"}.get(kind_of(kind))
        return f"sum(CAST({column} AS {exact}))" if exact else f"sum({column})"


class Spark(Dialect):
    """Spark SQL in ANSI mode, in UTC."""

    name = "spark"
    separate_distinct = True

    def column(self, name: str) -> str:
        return quoted(name)

    def text(self, value: str) -> str:
        return literal(value)

    def matches(self, column: str, pattern: str) -> str:
        return f"{column} RLIKE {self.text(pattern)}"

    def own(self, expression: str, types: Mapping[str, str]) -> str:
        return f"({expression})"

    def quantile(self, column: str, share: float) -> str:
        return f"percentile({column}, {share!r}e0)"

    def time(self, value: datetime) -> str:
        kind = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
        return f"{kind} '{value.isoformat(sep=' ')}'"

    def microseconds(self, column: str, kind: str) -> str:
        if kind_of(kind) == "date":
            return f"unix_date({column})"
        return f"unix_micros(CAST({column} AS TIMESTAMP))"


class DuckDB(Dialect):
    """DuckDB, in UTC."""

    name = "duckdb"
    separate_distinct = False

    def column(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        if "\0" in value:
            raise NeedsSpark("a text with a null character")
        return "'" + value.replace("'", "''") + "'"

    def matches(self, column: str, pattern: str) -> str:
        translated = regex.for_re2(pattern)
        if translated is None:
            raise NeedsSpark(f"the regular expression {pattern!r}")
        written, ends = translated
        found = f"regexp_matches({column}, {self.text(written)})"
        if not ends:
            return found
        shorter = f"regexp_replace({column}, {self.text(regex.LINE_END)}, '')"
        return f"({found} OR regexp_matches({shorter}, {self.text(written)}))"

    def own(self, expression: str, types: Mapping[str, str]) -> str:
        translated = to_duckdb(expression, types)
        if translated is None:
            raise NeedsSpark(f"the expression {' '.join(expression.split())!r}")
        return f"({translated})"

    def quantile(self, column: str, share: float) -> str:
        return f"quantile_cont({column}, {share!r})"

    def time(self, value: datetime) -> str:
        kind = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
        return f"{kind} '{value.isoformat(sep=' ')}'"

    def microseconds(self, column: str, kind: str) -> str:
        if kind_of(kind) == "date":
            return f"({column} - DATE '1970-01-01')"
        return f"epoch_us({column})"


SPARK = Spark()
DUCKDB = DuckDB()
