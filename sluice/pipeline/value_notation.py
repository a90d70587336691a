"""Options that state the notation of values in text: patterns and zone of times, and a locale.

A pattern must state the value: without a year, Spark would take 1970. The letters are those of Spark's patterns:
https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html
"""

import re
from collections.abc import Mapping
from zoneinfo import available_timezones

from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion

_FORMATS = {
    "dateformat": "dateFormat",
    "timestampformat": "timestampFormat",
    "timestampntzformat": "timestampNTZFormat",
}
_LENGTHS: Mapping[str, tuple[int, ...]] = {
    "G": (1, 2, 3, 4),
    "y": (1, 2, 3, 4, 5, 6),
    "M": (1, 2, 3, 4),
    "L": (1, 2, 3, 4),
    "d": (1, 2),
    "D": (1, 2, 3),
    "a": (1,),
    **dict.fromkeys("hHkKms", (1, 2)),
    "S": (1, 2, 3, 4, 5, 6),
    "V": (2,),
    "z": (1, 2, 3, 4),
    "O": (1, 4),
    "X": (1, 2, 3, 4, 5),
    "x": (1, 2, 3, 4, 5),
    "Z": (1, 2, 3, 4, 5),
}
"""Letters that Spark reads, and how often each may be repeated."""
_MEANT = {"Y": "y", "u": "y", "n": "S", "N": "S"}
"""Letters of other notations, and the letter that is meant."""
_ZONES = frozenset("VzOXxZ")
_LEVELS = (("year", "y"), ("month", "MLD"), ("day", "dD"), ("hour", "HhkK"), ("minute", "m"), ("second", "s"))
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|\[|\]|.", re.S)
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
    if zone is not None and not (_OFFSET.fullmatch(zone) or zone in available_timezones()):
        raise InvalidPipeline(
            f"the reader option timeZone: {zone!r} is not a time zone{suggestion(zone, available_timezones())}: write "
            "a name of the IANA database, such as Europe/Berlin, or an offset such as +02:00"
        )
    for key, name in _FORMATS.items():
        if (pattern := options.get(key)) is not None and (problem := _problem(pattern, key, zone)):
            raise InvalidPipeline(f"the reader option {name}: {pattern!r} {problem}")


def states_zone(pattern: str) -> bool:
    """Return True if the text of each value states its time zone or offset."""
    return not _ZONES.isdisjoint(token[:1] for token in _tokens(pattern))


def _tokens(pattern: str) -> list[str]:
    return [match[0] for match in _TOKEN.finditer(pattern)]


def _problem(pattern: str, key: str, zone: str | None) -> str:
    """Return what is wrong with a pattern; empty if nothing is."""
    runs = [token for token in _tokens(pattern) if token[0].isascii() and token[0].isalpha()]
    letters = {run[0] for run in runs}
    if pattern.count("'") % 2 or not _is_balanced(pattern):
        return "has a quote or a bracket that is not closed"
    for run in runs:
        if run[0] not in _LENGTHS:
            return _unknown(run)
        if run[0] == "S" and len(run) > max(_LENGTHS["S"]):
            return (
                "has more than six S, but a table stores microseconds: leave the option out if the values are as in "
                "2026-01-31 10:30:00.123456789, or read the column as STRING and convert it in a transform"
            )
        if len(run) not in _LENGTHS[run[0]]:
            return f"repeats {run[0]} {len(run)} times: it may occur {_listed(_LENGTHS[run[0]])} times in a row"
    return _gap(letters) or _zone_problem(pattern, letters, key, zone)


def _is_balanced(pattern: str) -> bool:
    depth = 0
    for token in _tokens(pattern):
        depth += (token == "[") - (token == "]")
        if depth < 0:
            return False
    return depth == 0


def _unknown(run: str) -> str:
    if meant := _MEANT.get(run[0]):
        return f"has the letter {run[0]}, which Spark does not read: write {meant * len(run)}"
    return (
        f"has the letter {run[0]}, which Spark does not read: write y for the year, M month, d day, H hour, m minute, "
        "s second, S fraction, XXX offset, and letters of the text itself in single quotes"
    )


def _gap(letters: set[str]) -> str:
    """Return which part of a time is missing before a smaller part; empty if none is."""
    missing = ""
    for name, own in _LEVELS:
        if letters.isdisjoint(own):
            missing = missing or name
        elif missing:
            hint = "; mm are minutes, months are MM" if missing == "month" and "m" in letters else ""
            return f"has no {missing}, so Spark would complete each value{hint}"
    if missing == "year":
        return "has no year, so Spark would complete each value"
    if "S" in letters and "s" not in letters:
        return "has no second, so Spark would complete each value"
    if letters & {"h", "K"} and "a" not in letters:
        return "has hours of 12-hour clocks without AM or PM: write HH, or add a for AM and PM"
    return ""


def _zone_problem(pattern: str, letters: set[str], key: str, zone: str | None) -> str:
    if _ZONES.isdisjoint(letters):
        return ""
    if key != "timestampformat":
        return "has a time zone, which this type does not store: use timestampFormat and the type TIMESTAMP"
    depth = 0
    for token in _tokens(pattern):
        depth += (token == "[") - (token == "]")
        if zone and depth and token[0] in _ZONES:
            return "has an optional time zone, which timeZone does not replace: leave one of them out"
    return ""


def _listed(numbers: tuple[int, ...]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{', '.join(map(str, numbers[:-1]))} or {numbers[-1]}"
