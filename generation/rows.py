"""Generate rows that checks accept: column by column, with repairs of the rows that an engine reports as bad."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from random import Random
from typing import Any

from generation.columns import Column, TableShape
from generation.demands import Demand, Known, collect_demands, pool_size
from generation.judging import Judge, Row
from generation.values import usual_ends
from sluice.checks.base import Check
from sluice.checks.references import CompareColumns
from sluice.checks.uniqueness import UniqueCombinationOfColumns

_ROUNDS = 25
"""Maximum number of rounds in which bad rows are generated again."""
_TRIES = 100
_KEY_RANGES = {"int": (10**8, 2 * 10**9), "long": (10**11, 9 * 10**11)}
"""Ranges of keys that no check bounds, far from keys that a table may contain."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}


class RowMaker:
    """Generator of the rows of one table. The same seed gives the same rows."""

    def __init__(self, judge: Judge, known: Known, seed: int | str) -> None:
        self.judge, self.known, self.random = judge, known, Random(f"sluice/{seed}")
        self.shape: TableShape = judge.shape
        self.checks: Sequence[Check] = judge.checks
        self.demands = collect_demands(self.shape, self.checks, known)
        for name in self.shape.dates:
            self.demands[name].nulls = 0
        self._used: dict[str, set[Any]] = {}
        self._pools: dict[str, list[Any]] = {}
        self._pinned: set[tuple[int, str]] = set()

    def make(self) -> list[Row]:
        """Return rows that the checks accept, as far as bad rows can be repaired."""
        cells = {name: self._column(demand) for name, demand in self.demands.items()}
        rows = [{name: values[at] for name, values in cells.items()} for at in range(self.known.rows)]
        for row in rows:
            self.settle(row)
        for demand in self.demands.values():
            _add_sequence(demand, rows)
        self._repair_combinations(rows)
        for _ in range(_ROUNDS):
            if not self._repair_bad_rows(rows):
                break
        return rows

    def settle(self, row: Row) -> None:
        """Make dependent columns of a row agree: parts of dates, and compared columns."""
        for check in self.checks:
            if isinstance(check, CompareColumns) and check.left in row and check.right in row:
                _compare(check, row)
        self.settle_dates(row)

    def settle_dates(self, row: Row) -> None:
        """Set the columns of a year, a month and a day to the date that the pipeline computes from them."""
        for name, parts in self.shape.dates.items():
            for part, unit in zip(parts, ("year", "month", "day"), strict=True):
                row[part] = getattr(row[name], unit, None)

    def _column(self, demand: Demand) -> list[Any]:
        count, name = self.known.rows, demand.column.name
        empty = set(self.random.sample(range(count), min(count, round(demand.nulls * count))))
        places = [at for at in range(count) if at not in empty]
        self.random.shuffle(places)
        if not demand.unique and (size := pool_size(demand, len(places))):
            self._fill_pool(demand, min(size, max(1, len(places))))
        if demand.unique:
            _widen(demand, count)
        values: list[Any] = [None] * count
        pins = list(dict.fromkeys([*demand.pinned, *self._pools.get(name, [])]))[: len(places)]
        for at, value in zip(places, pins, strict=False):
            values[at] = value
            self._pinned.add((at, name))
        self._used[name] = set(pins)
        rest = places[len(pins) :]
        for at, value in zip(rest, self._values(demand, len(rest)), strict=True):
            values[at] = value
        return values

    def _values(self, demand: Demand, count: int) -> list[Any]:
        column, members = demand.column, demand.members
        if demand.unique and members is not None:
            left = [each for each in dict.fromkeys(members) if each not in self._used[column.name]]
            self.random.shuffle(left)
            return [left[at] if at < len(left) else self.random.choice(members or [None]) for at in range(count)]
        if demand.unique and column.kind in ("int", "long"):
            low, high = usual_ends(column, demand.bounds)
            if count <= high - low + 1 - len(self._used[column.name]) < 3 * count:
                left = [each for each in range(int(low), int(high) + 1) if each not in self._used[column.name]]
                return self.random.sample(left, count)
        return [self._value(demand) for _ in range(count)]

    def _value(self, demand: Demand) -> Any:
        """Return a value for one row, from the column's pool if it has one, and an unused one if it is unique."""
        name = demand.column.name
        if pool := self._pools.get(name):
            return self.random.choice(pool)
        value = demand.value(self.random)
        for _ in range(_TRIES if demand.unique else 0):
            if value not in self._used[name]:
                break
            value = demand.value(self.random)
        if demand.unique:
            self._used[name].add(value)
        return value

    def _fill_pool(self, demand: Demand, size: int) -> None:
        pool = list(dict.fromkeys(demand.pinned))
        for _ in range(size * _TRIES):
            if len(pool) >= size:
                break
            value = demand.value(self.random)
            if value not in pool[-1000:]:
                pool.append(value)
        self._pools[demand.column.name] = pool

    def _redraw(self, at: int, row: Row, names: Iterable[str]) -> None:
        for name in names:
            demand = self.demands.get(name)
            if demand and row[name] is not None and (at, name) not in self._pinned and not demand.sequence:
                row[name] = self._value(demand)
        self.settle(row)

    def _repair_combinations(self, rows: list[Row]) -> None:
        """Generate the rows again that repeat a combination which must be unique."""
        for check in self.checks:
            if isinstance(check, UniqueCombinationOfColumns) and set(check.columns) <= self.demands.keys():
                for _ in range(_ROUNDS):
                    repeated = _repeated(rows, check.columns)
                    for at in repeated:
                        self._redraw(at, rows[at], check.columns)
                    if not repeated:
                        break

    def _repair_bad_rows(self, rows: list[Row]) -> bool:
        """Generate the rows again that a check reports as bad. Return True if there were any."""
        bad = self.judge.bad_rows(rows, range(len(self.checks)))
        for index, positions in bad.items():
            for at in positions:
                self._redraw(at, rows[at], self.checks[index].column_names)
        self._repair_combinations(rows)
        return any(bad.values())


def _repeated(rows: Sequence[Row], columns: Sequence[str]) -> list[int]:
    seen: set[tuple[Any, ...]] = set()
    repeated = []
    for at, row in enumerate(rows):
        key = tuple(row[name] for name in columns)
        if key in seen:
            repeated.append(at)
        seen.add(key)
    return repeated


def _compare(check: CompareColumns, row: Row) -> None:
    """Make a comparison of two columns true, by exchanging their values or by giving both the same."""
    left, right = row[check.left], row[check.right]
    if left is None or right is None or type(left) is not type(right):
        return
    below = check.operator in ("<", "<=")
    if (below and left > right) or (check.operator in (">", ">=") and left < right):
        row[check.left], row[check.right] = right, left
    elif check.operator == "=":
        row[check.right] = left


def _add_sequence(demand: Demand, rows: Sequence[Row]) -> None:
    """Make each value of a column the one before it plus an interval, in each group."""
    check = demand.sequence
    if check is None:
        return
    step: Any = check.interval
    if check.datepart:
        step = timedelta(seconds=check.interval * _SECONDS[check.datepart])
    last: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        group = tuple(row.get(name) for name in check.group_by)
        first = usual_ends(demand.column, demand.bounds)[0]
        last[group] = last[group] + step if group in last else first
        row[demand.column.name] = last[group]


def _widen(demand: Demand, count: int) -> None:
    """Widen the range of a unique column without stated bounds, so that it has enough values."""
    column: Column = demand.column
    bounds = demand.bounds
    if bounds.low is not None or bounds.high is not None or column.largest:
        return
    if column.kind in _KEY_RANGES:
        bounds.narrow(*_KEY_RANGES[column.kind])
    elif column.kind == "date":
        low, _ = usual_ends(column, bounds)
        bounds.narrow(low, low + timedelta(days=min(10 * count, 10**6)))
    elif column.kind in ("float", "double"):
        bounds.narrow(0.0, 10.0**9)


def without_computed(rows: Sequence[Row], shape: TableShape) -> list[Row]:
    """Return rows as a file contains them, without the dates that the pipeline computes."""
    return [{each.name: row[each.name] for each in shape.columns} for row in rows]
