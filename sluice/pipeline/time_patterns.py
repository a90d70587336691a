"""Patterns of dates and times that a pipeline may state, such as `dd.MM.yyyy`, by the letters that Spark reads."""

import re
from collections.abc import Iterator

PATTERN_OPTIONS = ("dateFormat", "timestampFormat", "timestampNTZFormat")
"""Options that state the pattern of a DATE, of a TIMESTAMP and of a TIMESTAMP_NTZ."""
_LONGEST = {
    "G": 4, "y": 6, "M": 4, "L": 4, "D": 3, "d": 2, "a": 1, "H": 2, "h": 2, "K": 2, "k": 2, "m": 2, "s": 2, "S": 9,
    "V": 2, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5,
}  # fmt: skip
"""Letters with which Spark reads dates and times: the longest run of each."""
_LENGTHS = {"V": (2,), "O": (1, 4)}
"""Letters that must have one of these lengths."""
_INSTEAD = {
    "Y": "the year of a week: write y for the year",
    "u": "the year in Java, and the day of a week in older Sparks: write y for the year",
    "A": "milliseconds of the day: write HH:mm:ss.SSS",
    "N": "nanoseconds of the day: write HH:mm:ss.SSSSSS",
    "n": "nanoseconds: write S for each digit of a fraction",
}
_DAY_OF_WEEK = "EeFcWwQq"
_AS_TEXT = "read the column as STRING, and convert it by a transform"
_PART = re.compile(r"'(?:[^']|'')*'|(?P<run>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>.)", re.S)
_RESERVED = ("{", "}", "#")


def pattern_problem(pattern: str) -> str | None:
    """Return why Spark cannot read values by a pattern and what to write instead, or None if it can."""
    return next(_problems(pattern), None)


def runs_of(pattern: str) -> Iterator[tuple[str, int]]:
    """Yield each run of a letter in a pattern, such as `yyyy`, and the number of brackets around it."""
    depth = 0
    for part in _PART.finditer(pattern):
        depth += {"[": 1, "]": -1}.get(part[0], 0)
        if run := part["run"]:
            yield run, depth


def _problems(pattern: str) -> Iterator[str]:
    if not pattern.strip():
        yield "it is empty: leave the option out, or write a pattern such as yyyy-MM-dd"
    depth = 0
    for part in _PART.finditer(pattern):
        if run := part["run"]:
            yield from _problems_of_run(run)
        elif part["other"] == "'":
            yield "a quote is not closed: write '' for one quote"
        elif part["other"] in _RESERVED:
            yield f"{part['other']} has no meaning: write it in quotes, '{part['other']}'"
        depth += {"[": 1, "]": -1}.get(part[0], 0)
        if depth < 0:
            yield "] closes no [: write it in quotes, ']'"


def _problems_of_run(run: str) -> Iterator[str]:
    letter = run[0]
    if letter in _INSTEAD:
        yield f"{letter} is {_INSTEAD[letter]}"
    elif letter in _DAY_OF_WEEK:
        yield f"Spark does not read {letter} (day of the week, week or quarter): {_AS_TEXT}"
    elif letter not in _LONGEST:
        yield f"{letter} has no meaning: use {' '.join(_LONGEST)}, or write text in quotes, '{run}'"
    elif len(run) > _LONGEST[letter]:
        yield f"{run} is too long: write at most {_LONGEST[letter] * letter}"
    elif len(run) not in _LENGTHS.get(letter, (len(run),)):
        yield f"{run} has no meaning: write {' or '.join(letter * length for length in _LENGTHS[letter])}"
