"""Options that state the notation of values in text: patterns and zone of times, and a locale.

A pattern must state the value: without a year, Spark would take 1970. The letters are those of Spark's patterns:
https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html
"""

import re
from collections.abc import Mapping

from sluice.errors import InvalidPipeline
from sluice.pipeline.time_patterns import PATTERN_OPTIONS, pattern_problem, runs_of
from sluice.pipeline.time_zones import known_zones, unknown_zone

_MOST_DIGITS = 6
"""Number of digits of a fraction of a second that a table stores."""
_ZONES = frozenset("VzOXxZ")
_LEVELS = (
    ("year", "y"), ("month", "MLD"), ("day", "dD"), ("hour", "HhkK"), ("minute", "m"), ("second", "s"),
    ("fraction", "S"),
)  # fmt: skip
"""Parts of a time, from the largest to the smallest, and the letters that state each."""
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|\d{3}))?", re.ASCII)
"""A locale as in BCP 47: language, script, region. For any other text, Java silently takes English notation."""
_OFFSET = re.compile(r"[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00", re.ASCII)


def check_notation(options: Mapping[str, str]) -> None:
    """Make sure that reader options state the notation of values completely.

    Args:
        options: reader options, whose names are in small letters.

    Raises:
        InvalidPipeline: Spark would complete or cut a value, or does not know the pattern, the zone or the locale.
    """
    locale = options.get("locale")
    if locale is not None and not _TAG.fullmatch(locale):
        raise InvalidPipeline(
            f"the reader option locale: {locale!r} is not a tag of a language and a country: write it as in de-DE"
        )
    zone = options.get("timezone")
    if zone is not None and not (_OFFSET.fullmatch(zone) or zone in known_zones()):
        problem = unknown_zone(zone, known_zones(), "an offset such as +02:00")
        raise InvalidPipeline(f"the reader option timeZone: {problem}")
    for name in PATTERN_OPTIONS:
        pattern = options.get(name.lower())
        if pattern is not None and (problem := _problem(pattern, zone, stores_zone=name == "timestampFormat")):
            raise InvalidPipeline(f"the reader option {name}: {pattern[:100]!r} cannot be set: {problem}")


def states_zone(pattern: str) -> bool:
    """Return True if the text of each value states its time zone or offset."""
    return not _ZONES.isdisjoint(run[0] for run, _ in runs_of(pattern))


def _problem(pattern: str, zone: str | None, *, stores_zone: bool) -> str:
    """Return what is wrong with a pattern; empty if nothing is.

    Args:
        zone: the zone of values whose text states none, or None if no option states it.
        stores_zone: True if the type of the values is a point in time.
    """
    if unreadable := pattern_problem(pattern):
        return unreadable
    letters = {run[0] for run, _ in runs_of(pattern)}
    if "S" * (_MOST_DIGITS + 1) in pattern:
        return (
            "it has more than six S, but a table stores microseconds: leave the option out if the values are as in "
            "2026-01-31 10:30:00.123456789, or read the column as STRING and convert it by a transform"
        )
    return _gap(letters) or _zone_problem(pattern, zone, stores_zone=stores_zone)


def _gap(letters: set[str]) -> str:
    """Return which part of a time is missing before a smaller part; empty if none is."""
    missing = ""
    for name, own in _LEVELS:
        if letters.isdisjoint(own):
            missing = missing or name
        elif missing:
            hint = "; mm are minutes, months are MM" if missing == "month" and "m" in letters else ""
            return f"it has no {missing}, so Spark would complete each value{hint}"
    if missing == "year":
        return "it has no year, so Spark would complete each value"
    if letters & {"h", "K"} and "a" not in letters:
        return "it has hours of 12-hour clocks without AM or PM: write HH, or add a for AM and PM"
    return ""


def _zone_problem(pattern: str, zone: str | None, *, stores_zone: bool) -> str:
    if not states_zone(pattern):
        return ""
    if not stores_zone:
        return "it has a time zone, which this type does not store: use timestampFormat and the type TIMESTAMP"
    if any(run[0] == "z" for run, _ in runs_of(pattern)):
        return (
            "z reads names such as EST and CST, which stand for several zones and for summer time: write XXX for "
            "offsets such as +02:00, VV for names such as Europe/Berlin, or read the column as STRING and convert it "
            "by a transform"
        )
    if zone and any(depth and run[0] in _ZONES for run, depth in runs_of(pattern)):
        return "it has an optional time zone, which timeZone does not replace: leave one of them out"
    return ""
