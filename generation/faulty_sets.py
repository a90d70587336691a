"""Changes of a column in all rows that break a check on the rows together: on distinct values or an aggregate."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from generation.columns import Column
from generation.judging import Row
from generation.values import Bounds, beyond, cast
from sluice.checks.aggregates import AggregateCheck, MeanInRange, QuantileInRange, StddevInRange, SumInRange
from sluice.checks.base import Check
from sluice.checks.extremes import MaxInRange, MinInRange
from sluice.checks.nulls import AtLeastOne, NotNullProportion
from sluice.checks.time_series import Freshness, RowPerDatePart, SequentialValues
from sluice.checks.uniqueness import DistinctCount, DistinctRatio, NotConstant
from sluice.checks.values import bound_of

_FAR = 2 * 86400


def spoiled_columns(check: Check, rows: Sequence[Row], column: Column, now: Any) -> list[list[Any]]:
    """Return lists of new values of a check's column that should break it, the most likely first."""
    values = [row[column.name] for row in rows]
    for kind, spoil in _SPOILERS.items():
        if isinstance(check, kind):
            made: list[list[Any]] = spoil(check, values, column, now)
            return made
    return []


def _proportion(check: NotNullProportion, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    filling = next((each for each in values if each is not None), None)
    few = int(len(values) * check.min) - 1
    fewer = [[*([filling] * few), *([None] * (len(values) - few))]] if check.min > 0 and few >= 0 else []
    return [*fewer, [filling if each is None else each for each in values]]


def _one_value(check: Check, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    first = next((each for each in values if each is not None), None)
    return [[None if each is None else first for each in values]]


def _nothing(check: Check, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    return [[None] * len(values)]


def _distinct(check: Check, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    """Return three columns: one value for all rows, no values, and a different value for each row."""
    return [
        *_one_value(check, values, column, now),
        *_nothing(check, values, column, now),
        _all_different(values, column),
    ]


def _all_different(values: Sequence[Any], column: Column) -> list[Any]:
    known = [each for each in values if each is not None]
    if column.kind == "string":
        return [f"{at:08}" for at in range(len(values))]
    if column.kind == "boolean" or not known:
        return list(values)
    different = []
    for at in range(len(values)):
        shifted = beyond(column, None, max(known), by=at + 1)
        different.append(shifted[0] if shifted else known[0])
    return different


def _lowest(check: AggregateCheck, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    low, high = bound_of(check.min, column.type), bound_of(check.max, column.type)
    below = [[each, *values[1:]] for each in beyond(column, low, None)]
    return below + [[each] * len(values) for each in beyond(column, None, high)]


def _highest(check: AggregateCheck, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    low, high = bound_of(check.min, column.type), bound_of(check.max, column.type)
    above = [[each, *values[1:]] for each in beyond(column, None, high)]
    return above + [[each] * len(values) for each in beyond(column, low, None)]


def _shifted(check: AggregateCheck, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    """Return columns of one repeated value, whose mean, quantile or sum lies outside the range."""
    count = len(values) if isinstance(check, SumInRange) else 1
    low, high = check.limits({column.name: column.type})
    ends = [(high, 1)] if high is not None else []
    ends += [(low, -1)] if low is not None else []
    return [
        [_number(column, float(end) / count + sign * (1 + abs(float(end) / count) / 10))] * len(values)
        for end, sign in ends
    ]


def _spread(check: StddevInRange, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    high = float(check.max or 0) * 3 + 2
    apart = [_number(column, high if at % 2 else 0.0) for at in range(len(values))]
    return [*_one_value(check, values, column, now), apart]


def _number(column: Column, value: float) -> Any:
    if column.kind in ("int", "long"):
        return round(value)
    typed: Any = bound_of(round(value, 6), column.type)
    return cast(column, typed, Bounds())


def _old(check: Freshness, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    oldest: Any = now - timedelta(seconds=int(check.max_age) + _FAR)
    if column.kind == "date":
        oldest = oldest.date()
    elif column.kind == "timestamp":
        oldest = oldest.replace(tzinfo=None)
    return [[None if each is None else oldest for each in values]]


def _gap(check: RowPerDatePart, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    """Return the values, all moved to the first and the last time, so that the parts between have no row."""
    known = sorted(each for each in values if each is not None)
    if not known:
        return []
    first, last = known[0], known[-1]
    return [[first if each is None or at % 2 else last for at, each in enumerate(values)]]


def _jump(check: SequentialValues, values: list[Any], column: Column, now: Any) -> list[list[Any]]:
    known = [each for each in values if each is not None]
    steps = 7 * check.interval * (86400 * 7 if column.kind.startswith("timestamp") else 1) + 1
    jumps = beyond(column, None, max(known), by=steps) if known else []
    return [[*values[:-1], each] for each in jumps]


_SPOILERS: Mapping[type[Check], Callable[[Any, list[Any], Column, Any], list[list[Any]]]] = {
    NotNullProportion: _proportion,
    AtLeastOne: _nothing,
    NotConstant: _one_value,
    DistinctCount: _distinct,
    DistinctRatio: _distinct,
    MinInRange: _lowest,
    MaxInRange: _highest,
    MeanInRange: _shifted,
    QuantileInRange: _shifted,
    SumInRange: _shifted,
    StddevInRange: _spread,
    Freshness: _old,
    RowPerDatePart: _gap,
    SequentialValues: _jump,
}
"""Functions that spoil a column, by the class of the check."""
