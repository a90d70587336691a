"""Checks of time columns and of sequences."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal

from pydantic import Field

from sluice.checks.base import (
    BAD_ROWS,
    ROWS,
    CheckQuery,
    Evaluation,
    Metrics,
    expand_columns,
    pass_or_fail,
    type_problem,
)
from sluice.checks.rows import ColumnRows, Filtered
from sluice.checks.values import enclosed
from sluice.durations import Duration, format_duration
from sluice.errors import InvalidPipeline
from sluice.metadata.statistics import TableStatistics
from sluice.sql.dialect import Dialect
from sluice.sql.values import TIMES, kind_of, typed

Part = Literal["hour", "day", "week", "month", "year"]
_MICROSECONDS = {
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}


def as_datetime(value: Any, kind: str) -> datetime:
    """Return a date or time as a datetime in UTC."""
    parsed = typed(value, kind) if isinstance(value, str) else value
    if not isinstance(parsed, datetime):
        return datetime(parsed.year, parsed.month, parsed.day, tzinfo=timezone.utc)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


class Freshness(Filtered):
    """The newest date or time must be at most `max_age` old when the audit begins. A date counts as its midnight."""

    aliases = {"dbt_utils.recency": {"field": "column"}}
    shorthand = "column"
    proof = "the bounds of the files show whether a value is new enough"
    observes_values = True

    check: Literal["freshness"] = "freshness"
    column: str = Field(min_length=1)
    max_age: Duration
    """Maximum age in seconds, or as `36h`, `2d`."""

    @property
    def own_columns(self) -> list[str]:
        return [self.column]

    @property
    def expected(self) -> str:
        return f"a newest value at most {format_duration(self.max_age)} old"

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        return type_problem(self.column, types, TIMES)

    def _limit(self, statistics: TableStatistics) -> datetime:
        return statistics.now - timedelta(seconds=self.max_age)

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        kind = statistics.types[self.column]
        files = [file for file in statistics.files(self.scope) if file.rows and file.values(self.column) != 0]
        if self.where or not files:
            return None
        limit = self._limit(statistics)
        for file in files:
            lower = file.column(self.column).lower
            if (
                file.values(self.column)
                and not file.deletes
                and lower is not None
                and as_datetime(lower, kind) >= limit
            ):
                return pass_or_fail(True, f"at least {lower}")
        bounds = [enclosed(file.column(self.column), kind) for file in files]
        if all(each is not None and as_datetime(each[1], kind) < limit for each in bounds):
            return pass_or_fail(False, f"at most {max(each[1] for each in bounds if each)}")
        return None

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        chosen = self.filtered_column(self.column, sql, types)
        return CheckQuery(aggregates={"newest": f"max({chosen})"}, columns=self.column_names)

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        if metrics["newest"] is None:
            return pass_or_fail(False, "no values")
        newest = as_datetime(metrics["newest"], statistics.types[self.column])
        return pass_or_fail(newest >= self._limit(statistics), str(metrics["newest"]))

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Convert dbt's `datepart` and `interval` to a maximum age."""
        given = dict(parameters)
        if given.keys() >= {"datepart", "interval"}:
            size = _MICROSECONDS.get(str(given.pop("datepart")))
            if size is None:
                raise InvalidPipeline("the datepart of a recency is second, minute, hour, day or week")
            interval = given.pop("interval")
            if isinstance(interval, bool) or not str(interval).isdecimal():
                raise InvalidPipeline(f"the interval of a recency is a whole number, not {str(interval)[:100]!r}")
            given["max_age"] = f"{int(interval) * size // 10**6}s"
        return [given]


class RowPerDatePart(Filtered):
    """Every hour, day, week, month or year from the first to the last must have a row."""

    aliases = {"expect_row_values_to_have_data_for_every_n_datepart": {"date_col": "column", "date_part": "part"}}
    shorthand = "column"

    check: Literal["row_per_date_part"] = "row_per_date_part"
    column: str = Field(min_length=1)
    part: Part = "day"
    first: str | None = None
    """The first part that must have a row; by default that of the smallest value."""
    last: str | None = None

    @property
    def own_columns(self) -> list[str]:
        return [self.column]

    @property
    def expected(self) -> str:
        ends = f" from {self.first or 'the first'} to {self.last or 'the last'}" if self.first or self.last else ""
        return f"a row for every {self.part}{ends}"

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        problems = type_problem(self.column, types, TIMES)
        if not problems and self.part == "hour" and kind_of(types[self.column]) == "date":
            return [f"{self.column!r} is a date, which has no hours"]
        try:
            ends = [] if problems else [typed(each, types[self.column]) for each in (self.first, self.last) if each]
        except ValueError as error:
            return [f"{self.column!r} is {types[self.column]}: {error}"]
        return ["first is after last"] if len(ends) == 2 and ends[0] > ends[1] else problems

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        column, kind = sql.column(self.column), types[self.column]
        tests = [
            f"{column} {sign} {sql.value(typed(end, kind))}"
            for sign, end in ((">=", self.first), ("<=", self.last))
            if end
        ]
        tests += [where] if (where := self.filtered(sql, types)) else []
        chosen = f"CASE WHEN {' AND '.join(tests)} THEN {column} END" if tests else column
        return CheckQuery(
            aggregates={"first": f"min({chosen})", "last": f"max({chosen})"},
            distinct={"parts": sql.part(self.part, chosen)},
            columns=self.column_names,
        )

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        kind = statistics.types[self.column]
        first, last = self.first or metrics["first"], self.last or metrics["last"]
        if first is None or last is None or metrics["first"] is None:
            return pass_or_fail(False, "no values")
        wanted = _index(self.part, as_datetime(last, kind)) - _index(self.part, as_datetime(first, kind)) + 1
        missing = wanted - int(metrics["parts"])
        return pass_or_fail(missing == 0, f"{missing} of {wanted} {self.part}s without a row")


def _index(part: str, at: datetime) -> int:
    """Return the sequence number of a part of time. Weeks begin on Monday (ISO 8601)."""
    days = at.date().toordinal()
    numbers = {
        "hour": days * 24 + at.hour,
        "day": days,
        "week": (days - date(1, 1, 1).toordinal()) // 7,
        "month": at.year * 12 + at.month,
        "year": at.year,
    }
    return numbers[part]


class SequentialValues(ColumnRows):
    """Each value, in ascending order, must be the value before it plus an interval, in each group of `group_by`."""

    aliases = {"dbt_utils.sequential_values": {"group_by_columns": "group_by"}}
    kinds = ("int", "long", *TIMES)
    row_level = False

    check: Literal["sequential_values"] = "sequential_values"
    interval: int = Field(default=1, ge=1)
    datepart: Literal["second", "minute", "hour", "day", "week"] | None = None
    """The unit of the interval in a column of times; for dates, `day` or `week`."""
    group_by: list[str] = Field(default_factory=list)

    @property
    def own_columns(self) -> list[str]:
        return [self.column, *self.group_by]

    @property
    def demand(self) -> str:
        return f"steps of {self.interval}{' ' + self.datepart if self.datepart else ''}"

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        problems, kind = super().type_problems(types), kind_of(types[self.column])
        if not problems and (kind in TIMES) != bool(self.datepart):
            return [f"{self.column!r} is {kind}: " + ("leave datepart out" if self.datepart else "give datepart")]
        if not problems and kind == "date" and self.datepart not in ("day", "week"):
            return [f"{self.column!r} is a date: datepart is day or week"]
        return problems

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        column, kind = sql.column(self.column), types[self.column]
        where = self.filtered(sql, types)
        position, step = column, self.interval
        if self.datepart:
            position = sql.microseconds(column, kind)
            per_day = _MICROSECONDS["day"] if kind_of(kind) == "date" else 1
            step = self.interval * _MICROSECONDS[self.datepart] // per_day
        groups = "".join(f"{sql.column(name)}, " for name in self.group_by)
        by = f"PARTITION BY {groups[:-2]} " if groups else ""
        tests = f" WHERE {column} IS NOT NULL" + (f" AND {where}" if where else "")
        window = f"{position} - lag({position}) OVER ({by}ORDER BY {position}) AS sluice_step"
        return CheckQuery(
            where=where,
            groups=f"SELECT {groups}{column}, 1 AS {BAD_ROWS} FROM "
            f"(SELECT {groups}{column}, {window} FROM {ROWS}{tests}) AS sluice_steps WHERE sluice_step <> {step}",
            columns=self.column_names,
            show=self.own_columns,
        )

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return list(expand_columns(parameters))
