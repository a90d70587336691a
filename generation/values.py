"""Values of one column: random values between two bounds, and values beyond a bound."""

import math
import struct
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from random import Random
from typing import Any

from generation.columns import Column
from generation.patterns import random_word

_FIRST_DAY = date(2024, 1, 1)
_DAYS = 365
_WORD = 8
_LARGEST = {"int": 2**31 - 1, "long": 2**63 - 1}
_CALENDAR = {"year": (2000, 2030), "month": (1, 12), "day": (1, 28), "hour": (0, 23), "minute": (0, 59)}
"""Ranges of whole numbers in columns of these names, unless a check says otherwise: parts of dates that exist."""


@dataclass
class Bounds:
    """The values between two ends, both included unless `inclusive` says otherwise."""

    low: Any = None
    high: Any = None
    inclusive: bool = True

    def narrow(self, low: Any, high: Any, inclusive: bool = True) -> None:
        """Restrict the range to values that also lie between two other ends."""
        if low is not None and (self.low is None or low >= self.low):
            self.low = low
        if high is not None and (self.high is None or high <= self.high):
            self.high = high
        self.inclusive = self.inclusive and inclusive

    @property
    def is_empty(self) -> bool:
        """True if no value lies between the ends."""
        return self.low is not None and self.high is not None and bool(self.low > self.high)


def scale_of(column: Column) -> tuple[int, int]:
    """Return the precision and the scale of a decimal column."""
    precision, scale = column.type.split("(")[1].rstrip(")").split(",")
    return int(precision), int(scale)


def random_value(column: Column, bounds: Bounds, random: Random) -> Any:
    """Return a random value of a column between two ends. A usual end replaces a missing one."""
    kind = column.kind
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "string":
        return _text(column, bounds, random)
    return cast(column, _between(*usual_ends(column, bounds), random, kind), bounds)


def usual_ends(column: Column, bounds: Bounds) -> tuple[Any, Any]:
    """Return two ends for the values of an ordered column. A missing end lies a usual span from the other."""
    first, last = _usual(column)
    span, low, high = last - first, bounds.low, bounds.high
    if low is None and high is None:
        return first, last
    if low is None:
        low = first if first < high else high - span
    elif high is None:
        high = last if last > low else low + span
    low, high = _capped(column, low), _capped(column, high)
    if not bounds.inclusive:
        unit = step_of(column)
        low, high = (low if bounds.low is None else low + unit), (high if bounds.high is None else high - unit)
    return low, high


def _capped(column: Column, value: Any) -> Any:
    largest = column.largest or _LARGEST.get(column.kind)
    return value if largest is None else max(-largest - 1, min(largest, value))


def _usual(column: Column) -> tuple[Any, Any]:
    kind = column.kind
    if kind in ("int", "long"):
        return _CALENDAR.get(column.name.lower(), (1, min(column.largest or 10**6, 10**6)))
    if kind == "decimal":
        precision, scale = scale_of(column)
        return Decimal(0), min(Decimal(1000), Decimal(10) ** (precision - scale) - step_of(column))
    if kind in ("float", "double"):
        return 0.0, 1000.0
    if kind == "date":
        return _FIRST_DAY, _FIRST_DAY + timedelta(days=_DAYS)
    first = datetime(2024, 1, 1, tzinfo=timezone.utc if kind == "timestamptz" else None)
    return first, first + timedelta(days=_DAYS)


def step_of(column: Column) -> Any:
    """Return a small distance between two values of an ordered column."""
    kind = column.kind
    if kind == "decimal":
        return Decimal(1).scaleb(-scale_of(column)[1])
    if kind in ("float", "double"):
        return 0.125
    if kind == "date":
        return timedelta(days=1)
    return timedelta(seconds=1) if kind.startswith("timestamp") else 1


def _between(low: Any, high: Any, random: Random, kind: str) -> Any:
    if kind in ("int", "long"):
        low, high = math.ceil(low), math.floor(high)
        return random.randint(low, high) if low <= high else low
    if kind == "decimal":
        return low + (high - low) * Decimal(random.randrange(10**9 + 1)) / 10**9
    if kind == "date":
        return low + timedelta(days=random.randint(0, max(0, (high - low).days)))
    if kind.startswith("timestamp"):
        return low + timedelta(seconds=random.randint(0, max(0, int((high - low).total_seconds()))))
    return low + (high - low) * random.random()


def cast(column: Column, value: Any, bounds: Bounds) -> Any:
    """Round a number to the digits that the column stores, and keep it between the ends if possible."""
    if column.kind == "decimal":
        unit = step_of(column)
        rounded = value.quantize(unit, ROUND_HALF_EVEN)
        if bounds.low is not None and rounded < bounds.low:
            return value.quantize(unit, ROUND_CEILING)
        return value.quantize(unit, ROUND_FLOOR) if bounds.high is not None and rounded > bounds.high else rounded
    if column.kind == "float":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if column.kind == "double":
        rounded = round(value, 3)
        outside = (bounds.low is not None and rounded <= bounds.low) or (
            bounds.high is not None and rounded >= bounds.high
        )
        return value if outside else rounded
    return value


def _text(column: Column, bounds: Bounds, random: Random) -> str:
    word = random_word(random, min(_WORD, column.length or _WORD))
    low, high = bounds.low, bounds.high
    if low is not None and (word < low or (not bounds.inclusive and word == low)):
        word = f"{low}{word}"[: column.length]
    if high is not None and word > high:
        word = str(low if low is not None else high[:1])
    return word


def beyond(column: Column, low: Any, high: Any, by: int = 1) -> list[Any]:
    """Return values above `high` and below `low` that the column can store.

    Args:
        by: number of small steps beyond the end.
    """
    if column.kind == "string":
        above = [f"{high}~"] if high is not None else []
        return above + ([str(low)[:-1], ""] if low is not None else [])
    if column.kind == "boolean":
        return [not each for each in (low, high) if each is not None]
    step = step_of(column) * by
    if column.kind in ("float", "double"):
        step = max([step, *(abs(each) / 1000 for each in (low, high) if each is not None)])
    values = []
    for end, sign in ((high, 1), (low, -1)):
        try:
            value = end + sign * step if end is not None else None
        except OverflowError:
            continue
        if value is not None and _can_store(column, value):
            values.append(cast(column, value, Bounds()))
    return values


def _can_store(column: Column, value: Any) -> bool:
    if column.kind == "decimal":
        precision, scale = scale_of(column)
        return bool(abs(value) < Decimal(10) ** (precision - scale))
    return bool(_capped(column, value) == value)
