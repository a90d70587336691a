"""Demands of checks on the values of a column, collected so that accepted values can be generated.

A demand is a plan and not a proof: an engine decides whether the checks accept the rows (`judging.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil
from random import Random
from typing import Any

from generation.columns import Column, TableShape
from generation.hints import expression_bounds
from generation.parts import parts_between
from generation.patterns import formatted, matching_like, matching_regex, random_word
from generation.simple_queries import NoRowsWhere
from generation.values import Bounds, random_value, usual_ends
from sluice.checks.aggregates import MeanInRange, QuantileInRange, StddevInRange, SumInRange
from sluice.checks.base import Check
from sluice.checks.extremes import MaxInRange, MinInRange
from sluice.checks.nulls import NotNull, NotNullProportion
from sluice.checks.query import ExpressionIsTrue
from sluice.checks.references import Relationships
from sluice.checks.strings import MatchLike, MatchRegex, NotEmptyString, StringLength, ValidFormat
from sluice.checks.time_series import Freshness, RowPerDatePart, SequentialValues
from sluice.checks.uniqueness import DistinctCount, DistinctRatio, NotConstant, Unique
from sluice.checks.values import AcceptedRange, AcceptedValues, NotAcceptedValues, bound_of
from sluice.sql.values import typed

_NULLS = 0.05
"""Share of nulls in a column without other demands."""
_PARTS = 10
_PREFERRED_AGE = 0.25
"""Age of the newest value, as a share of the maximum that `freshness` allows. The run comes later."""
_CHECKS_OF_VALUES = (NotNull, AcceptedRange, NotAcceptedValues, StringLength, NotEmptyString, Unique)
"""Checks that judge each value separately."""
MakeText = Callable[[Random], str | None]


@dataclass(frozen=True)
class Known:
    """Facts that are known in addition to the checks."""

    rows: int
    no_null: bool
    now: datetime
    references: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values of a column of another table, by `reference_key`."""
    samples: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values of the columns in the table or in files of the source, each as often as it occurs."""


@dataclass
class Demand:
    """Demands on the values of one column."""

    column: Column
    nulls: float = _NULLS
    bounds: Bounds = field(default_factory=Bounds)
    members: list[Any] | None = None
    excluded: list[Any] = field(default_factory=list)
    usual: list[Any] = field(default_factory=list)
    """Known values of the column, if the checks accept each of them."""
    pinned: list[Any] = field(default_factory=list)
    """Values that must occur."""
    make_text: MakeText | None = None
    lengths: tuple[int, int | None] = (0, None)
    unique: bool = False
    distinct: tuple[int | None, int | None] = (None, None)
    """Minimum and maximum number of different values."""
    ratio: tuple[float, float] | None = None
    sequence: SequentialValues | None = None
    """The check that requires each value to be the one before it plus an interval."""

    def value(self, random: Random) -> Any:
        """Return a random value. It may break a demand that only an engine can check."""
        if self.members is not None:
            return random.choice(self.members) if self.members else None
        for _ in range(20):
            value = self._any_value(random)
            if value not in self.excluded:
                return value
        return value

    def _any_value(self, random: Random) -> Any:
        if self.usual and not self.unique:
            return random.choice(self.usual)
        made = self.make_text(random) if self.make_text else None
        value = made if made is not None else random_value(self.column, self.bounds, random)
        least, most = self.lengths
        if isinstance(value, str) and made is None and (least or most is not None):
            value = random_word(random, random.randint(least, most if most is not None else least + 8))
        return value


def reference_key(check: Relationships) -> str:
    """Return the key of the values that a foreign key may have."""
    return f"{check.reference.key}.{check.field}"


def collect_demands(shape: TableShape, checks: Sequence[Check], known: Known) -> dict[str, Demand]:
    """Collect the demands of checks on each column. Checks of other columns or whole tables are left out."""
    columns = [*shape.columns, *(Column(name, "date") for name in shape.dates)]
    demands = {each.name: Demand(each) for each in columns}
    for parts in shape.dates.values():
        for name in parts:
            demands[name].nulls = 0
    for demand in demands.values():
        if demand.column.required or known.no_null:
            demand.nulls = 0
    for check in checks:
        if all(name in demands for name in check.column_names):
            _add(check, demands, known)
    for name, demand in demands.items():
        if all(isinstance(each, _CHECKS_OF_VALUES) for each in checks if name in each.column_names):
            demand.usual = [value for value in known.samples.get(name, ()) if _may_be(value, demand)]
    return demands


def _may_be(value: Any, demand: Demand) -> bool:
    """Return True if a value meets the bounds, the lengths and the exclusions of a column."""
    low, high, is_inclusive = demand.bounds.low, demand.bounds.high, demand.bounds.inclusive
    is_end = not is_inclusive and value in (low, high)
    least, most = demand.lengths
    has_length = not isinstance(value, str) or (least <= len(value) and (most is None or len(value) <= most))
    is_between = (low is None or low <= value) and (high is None or value <= high)
    return is_between and has_length and not is_end and value not in demand.excluded


def _add(check: Check, demands: Mapping[str, Demand], known: Known) -> None:
    if isinstance(check, ExpressionIsTrue):
        for name in check.own_columns:
            demands[name].nulls = 0
        must_hold = not isinstance(check, NoRowsWhere)
        for name, (low, high, inclusive) in expression_bounds(check.expression if must_hold else "TRUE").items():
            if name in demands:
                _narrow(demands[name], low, high, inclusive)
        return
    demand = demands.get(getattr(check, "column", ""))
    if demand is not None:
        _add_nulls(check, demand, known)
        _add_values(check, demand, known)
        _add_text(check, demand)
        _add_set(check, demand, known)
        _add_times(check, demand, known)


def _add_nulls(check: Check, demand: Demand, known: Known) -> None:
    if isinstance(check, NotNull):
        demand.nulls = 0
    elif isinstance(check, NotNullProportion) and not known.no_null:
        most, least = 1 - check.min, 1 - check.max
        demand.nulls = min(max(min(demand.nulls, most / 2), least), most)


def _add_values(check: Check, demand: Demand, known: Known) -> None:
    kind = demand.column.type
    if isinstance(check, AcceptedValues):
        members = [typed(value, kind) for value in check.values]
        demand.members = members if demand.members is None else [each for each in demand.members if each in members]
        demand.pinned += members if check.all_present else []
    elif isinstance(check, NotAcceptedValues):
        demand.excluded += [typed(value, kind) for value in check.values]
        if demand.column.kind == "boolean":
            demand.members = [each for each in (True, False) if each not in demand.excluded]
    elif isinstance(check, AcceptedRange):
        demand.bounds.narrow(bound_of(check.min, kind), bound_of(check.max, kind), check.inclusive)
    elif isinstance(check, Relationships) and reference_key(check) in known.references:
        demand.members = list(known.references[reference_key(check)])


def _add_text(check: Check, demand: Demand) -> None:
    if isinstance(check, StringLength):
        least, most = demand.lengths
        highs = [each for each in (most, check.max) if each is not None]
        demand.lengths = max(least, check.min or 0), min(highs) if highs else None
    elif isinstance(check, NotEmptyString):
        demand.lengths = max(1, demand.lengths[0]), demand.lengths[1]
    elif isinstance(check, MatchRegex):
        pattern = check.pattern
        demand.make_text = lambda random: matching_regex(pattern, random)
    elif isinstance(check, MatchLike):
        like = check.pattern
        demand.make_text = lambda random: matching_like(like, random)
    elif isinstance(check, ValidFormat):
        name = check.format
        demand.make_text = lambda random: formatted(name, random)


def _add_set(check: Check, demand: Demand, known: Known) -> None:
    rows = max(1, known.rows - round(demand.nulls * known.rows))
    kind = demand.column.type
    if isinstance(check, Unique):
        demand.unique = True
    elif isinstance(check, NotConstant):
        demand.distinct = max(2, demand.distinct[0] or 0), demand.distinct[1]
    elif isinstance(check, DistinctCount):
        demand.distinct = check.min, check.max
    elif isinstance(check, DistinctRatio):
        demand.ratio = (check.min, check.max)
    elif isinstance(check, MinInRange | MaxInRange):
        low, high = bound_of(check.min, kind), bound_of(check.max, kind)
        is_min = isinstance(check, MinInRange)
        demand.bounds.narrow(low if is_min else None, None if is_min else high)
        demand.pinned += [random_end for random_end in [low if is_min else high] if random_end is not None] or [
            high if is_min else low
        ]
    elif isinstance(check, MeanInRange | QuantileInRange):
        _narrow(demand, check.min, check.max)
    elif isinstance(check, SumInRange):
        low, high = (None if each is None else Decimal(str(each)) / rows for each in (check.min, check.max))
        _narrow(demand, low, high)
    elif isinstance(check, StddevInRange):
        _spread(demand, check)


def _spread(demand: Demand, check: StddevInRange) -> None:
    """Narrow the values to a span that has the demanded standard deviation if they are spread evenly."""
    least = float(check.min) if check.min is not None else 0.0
    most = float(check.max) if check.max is not None else 2 * least + 1
    width = (least + most) / 2 * 12**0.5
    low = float(usual_ends(demand.column, demand.bounds)[0])
    _narrow(demand, low, low + width)


def _narrow(demand: Demand, low: Any, high: Any, inclusive: bool = True) -> None:
    """Narrow the bounds of a column by numbers or texts, if its type has such values."""
    try:
        ends = [None if each is None else _end(demand.column, each) for each in (low, high)]
        demand.bounds.narrow(ends[0], ends[1], inclusive)
    except (ValueError, TypeError):
        return


def _end(column: Column, value: Any) -> Any:
    plain = float(value) if isinstance(value, Decimal) and column.kind != "decimal" else value
    return typed(str(plain), column.type) if isinstance(plain, Decimal) else bound_of(plain, column.type)


def _add_times(check: Check, demand: Demand, known: Known) -> None:
    column = demand.column
    if isinstance(check, SequentialValues):
        demand.sequence = check
    elif isinstance(check, Freshness):
        newest: Any = known.now - timedelta(seconds=int(check.max_age * _PREFERRED_AGE))
        if column.kind == "date":
            newest = known.now.date()
        elif column.kind == "timestamp":
            newest = newest.replace(tzinfo=None)
        demand.pinned.append(newest)
    elif isinstance(check, RowPerDatePart):
        ends = [typed(each, column.type) if each else None for each in (check.first, check.last)]
        low, _ = usual_ends(column, Bounds(demand.bounds.low or ends[0], None))
        demand.pinned += parts_between(check.part, ends[0] or low, ends[1], _PARTS)
        demand.bounds.narrow(min(demand.pinned), max(demand.pinned))


def pool_size(demand: Demand, values: int) -> int | None:
    """Return the number of different values for a column, or None if no check restricts it."""
    least, most = demand.distinct
    if demand.ratio:
        return max(1, ceil(sum(demand.ratio) / 2 * values))
    if most is not None:
        return max(1, ((least or 1) + most) // 2)
    return least
