"""Thresholds of bad rows: the levels `warn_if` and `fail_if`, in rows or in percent of the rows."""

import re
from fractions import Fraction

_TERM = re.compile(r"\s*(>=|>|!=)?\s*(\d+(?:\.\d+)?)\s*(%)?\s*")


def threshold(text: str | int | float) -> str:
    """Return a threshold in normal form: `> 10`, `>= 1%`. A bare number means `>`.

    Raises:
        ValueError: it is not a threshold.
    """
    match = None if isinstance(text, bool) else _TERM.fullmatch(str(text))
    if not match:
        raise ValueError(f"{text!r} is not a threshold: write one such as '> 10' (rows) or '>= 1%' (of the rows)")
    operator, number, percent = match[1] or ">", match[2], match[3] or ""
    if operator == "!=":
        if Fraction(number):
            raise ValueError(f"{text!r} is not a threshold: '!=' goes with 0 only")
        operator = ">"
    if percent and Fraction(number) > 100:
        raise ValueError(f"{text!r} is more than all rows")
    if not percent and "." in number:
        raise ValueError(f"{text!r} is not a whole number of rows")
    if operator == ">=" and not Fraction(number):
        raise ValueError(f"{text!r} is always true")
    return f"{operator} {number}{percent}"


def exceeds(failed: int, rows: int, limit: str) -> bool:
    """Return True if a number of bad rows exceeds a threshold."""
    operator, number = limit.split()
    bound = Fraction(number.rstrip("%"))
    if number.endswith("%"):
        bound = bound * rows / 100
    return failed > bound or (operator == ">=" and failed == bound and failed > 0)


def is_share(limit: str) -> bool:
    """Return True if a threshold is a share of the rows."""
    return limit.endswith("%")


def contradiction(warn: str, fail: str) -> str | None:
    """Return the reason why two levels contradict each other, or None. A warning must need fewer bad rows."""
    if is_share(warn) != is_share(fail):
        return None
    levels = [(Fraction(each.split()[1].rstrip("%")), each.startswith("> ")) for each in (warn, fail)]
    if levels[0] >= levels[1]:
        return f"warn_if ({warn}) would never be reached before fail_if ({fail})"
    return None
