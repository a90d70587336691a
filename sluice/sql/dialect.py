"""The SQL dialects of the scan engines. Spark SQL defines the meaning of every check.

Spark sessions of built-in jobs run in ANSI mode and in UTC. Where DuckDB's SQL differs, its dialect either writes
an equivalent expression or raises `NeedsSpark`.
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
    """Raised when DuckDB's SQL cannot express a query with the meaning that Spark SQL gives it."""


class Dialect(ABC):
    """Writes SQL expressions for one engine."""

    name: str
    separate_distinct: bool
    """True if a distinct count is cheaper in a query of its own."""

    @abstractmethod
    def column(self, name: str) -> str:
        """Return a column name, quoted."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Return a string literal."""

    @abstractmethod
    def matches(self, column: str, pattern: str) -> str:
        """Return the condition that a string matches a regular expression, at any position."""

    @abstractmethod
    def translated(self, expression: str, types: Mapping[str, str]) -> str:
        """Return a condition that a user wrote in Spark SQL, in this dialect."""

    @abstractmethod
    def quantile(self, column: str, share: float) -> str:
        """Return the aggregate of the exact quantile, interpolated between its neighbours."""

    @abstractmethod
    def time(self, value: datetime) -> str:
        """Return a timestamp literal, with or without a zone."""

    def part(self, unit: str, column: str) -> str:
        """Return a time truncated to its hour, day, week, month, quarter or year."""
        return f"date_trunc({self.text(unit)}, {column})"

    @abstractmethod
    def microseconds(self, column: str, kind: str) -> str:
        """Return the microseconds since 1970 of a time, or the days since 1970 of a date."""

    def value(self, value: Any) -> str:
        """Return the literal of a value that `values.typed` returned."""
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
        """Return the condition that a string matches a LIKE pattern, with the backslash as escape."""
        return f"{column} LIKE {self.text(pattern)} ESCAPE {self.text(chr(92))}"

    def is_nan(self, column: str, kind: str) -> str:
        """Return the condition that a value is NaN; false for a type without NaN."""
        return f"isnan({column})" if kind_of(kind) in FLOATS else "FALSE"

    def count_if(self, condition: str) -> str:
        """Return the number of rows for which a condition is true; 0 if there are no rows."""
        return f"CAST(coalesce(count_if({condition}), 0) AS BIGINT)"

    def total(self, column: str, kind: str) -> str:
        """Return a sum that does not overflow."""
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

    def translated(self, expression: str, types: Mapping[str, str]) -> str:
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
        for_re2 = regex.for_re2(pattern)
        if for_re2 is None:
            raise NeedsSpark(f"the regular expression {pattern!r}")
        written, ends = for_re2
        matches = f"regexp_matches({column}, {self.text(written)})"
        if not ends:
            return matches
        shorter = f"regexp_replace({column}, {self.text(regex.LINE_END)}, '')"
        return f"({matches} OR regexp_matches({shorter}, {self.text(written)}))"

    def translated(self, expression: str, types: Mapping[str, str]) -> str:
        condition = to_duckdb(expression, types)
        if condition is None:
            raise NeedsSpark(f"the expression {' '.join(expression.split())!r}")
        return f"({condition})"

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
