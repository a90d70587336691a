"""Arguments of one imported test. The test is refused unless each argument is used, or ignored on purpose."""

from collections.abc import Mapping
from typing import Any

from importing.imported import AlwaysPasses, NotCarriedOver
from importing.sql_text import bound_sql, number

UNREADABLE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""Errors from reading a test with values of types that its tool does not allow."""
_FLAGS = {"true": True, "false": False, "1": True, "0": False}


class Arguments:
    """Arguments of a test by name. A test with an argument that no builder removes is not carried over."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = {str(key).lower(): value for key, value in given.items()}
        self._all = dict(self._given)

    def take(self, *names: str, default: Any = None) -> Any:
        """Remove these arguments, and return the first that is not null, or a default if there is none."""
        values = [self._given.pop(name) for name in names if name in self._given]
        return next((value for value in values if value is not None), default)

    def given(self, name: str) -> Any:
        """Return an argument, even if it was removed before, or None if it is absent."""
        return self._all.get(name)

    def required(self, *names: str) -> Any:
        """Remove and return an argument that the test requires.

        Raises:
            NotCarriedOver: it is missing.
        """
        value = self.take(*names)
        if value is None:
            raise NotCarriedOver(f"{names[0]!r} is missing")
        return value

    def listed(self, *names: str) -> list[Any]:
        """Remove and return an argument as a list. One value becomes a list of one, and none an empty list."""
        value = self.take(*names, default=[])
        return list(value) if isinstance(value, list | tuple) else [value]

    def flag(self, name: str, default: bool = False) -> bool:
        """Remove and return an argument that is true or false, also if it is written as text.

        Raises:
            NotCarriedOver: the argument is neither true nor false.
        """
        value = self.take(name, default=default)
        known = _FLAGS.get(str(value).strip().lower())
        if known is None:
            raise NotCarriedOver(f"{name!r} is {str(value)[:40]!r}, and neither true nor false")
        return known

    def text(self, *names: str) -> str:
        """Remove a required argument and return it as text."""
        return str(self.required(*names))

    def put(self, name: str, value: Any) -> None:
        """Set an argument."""
        self._given[name] = value

    def ignore(self, *names: str) -> None:
        """Remove arguments that do not change the result."""
        for name in names:
            self._given.pop(name, None)

    def range(self) -> "Range":
        """Remove the bounds `min_value` and `max_value`, and return them with the options that exclude them.

        Raises:
            AlwaysPasses: there is no bound.
        """
        low, high = self.take("min_value"), self.take("max_value")
        strict = self.flag("strictly")
        strict_low, strict_high = (self.flag(name) or strict for name in ("strict_min", "strict_max"))
        if low is None and high is None:
            raise AlwaysPasses("it has neither min_value nor max_value, and always passes")
        return Range(low, high, strict_low, strict_high)

    def refuse_rest(self) -> None:
        """Check that every argument was removed.

        Raises:
            NotCarriedOver: an argument was not removed.
        """
        left = [name for name, value in self._given.items() if value is not None]
        if left:
            raise NotCarriedOver(f"{', '.join(map(repr, left))} has no equivalent here")


class Range:
    """Two bounds, one of which may be None, and for each whether it is excluded from the range."""

    def __init__(self, low: Any, high: Any, strict_low: bool = False, strict_high: bool = False) -> None:
        self.low, self.high = low, high
        self.strict_low, self.strict_high = strict_low and low is not None, strict_high and high is not None

    def condition_on(self, expression: str) -> str:
        """Return the condition that a SQL expression lies in the range."""
        tests = []
        if self.low is not None:
            tests.append(f"{expression} {'>' if self.strict_low else '>='} {bound_sql(self.low)}")
        if self.high is not None:
            tests.append(f"{expression} {'<' if self.strict_high else '<='} {bound_sql(self.high)}")
        return " AND ".join(tests)

    @property
    def as_numbers(self) -> dict[str, int | float] | None:
        """The bounds as `min` and `max` of a check; None if one is not a number or is excluded."""
        if self.strict_low or self.strict_high:
            return None
        bounds = {"min": self.low, "max": self.high}
        numbers = {name: number(value) for name, value in bounds.items() if value is not None}
        return {k: v for k, v in numbers.items() if v is not None} if None not in numbers.values() else None

    @property
    def as_whole_numbers(self) -> dict[str, int] | None:
        """The bounds of a count as `min` and `max`, an excluded one moved by one; None if these are not counts."""
        low, high = number(self.low), number(self.high)
        if (self.low is not None and not isinstance(low, int)) or (self.high is not None and not isinstance(high, int)):
            return None
        bounds = {}
        if isinstance(low, int):
            bounds["min"] = low + self.strict_low
        if isinstance(high, int):
            bounds["max"] = high - self.strict_high
        return bounds if min(bounds.values()) >= 0 else None
