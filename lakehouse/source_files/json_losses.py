"""Refuse JSON text that Spark changes or drops without an error: half a character, and a field without a name.

Spark stores `?` for a surrogate such as `\\ud83d` without its other half, and drops a field whose name is empty.
"""

import re
from collections.abc import Iterator

from lakehouse.source_files.line_ends import WHITESPACE
from sluice.errors import InvalidInput

_SURROGATES = (r"\ud", r"\uD")
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_WHOLE_OR_LONE = re.compile(rf"\\\\|{_HIGH}{_LOW}|({_HIGH}|{_LOW})")
"""An escaped backslash, a pair of surrogates, or, as a group, a lone surrogate."""
_EMPTY_OBJECT = re.compile(rf"{{[{WHITESPACE}]*}}")
_PARTS_OF_ESCAPE = "\\u0123456789abcdefABCDEF"
_LONG_RUN = 4_096
_EMPTY_NAME = re.compile(r"""(?:""|'')\s*:""")
"""An empty name. Single quotes enclose one only outside of a string; Spark accepts them by default."""
_STRING = re.compile(r""""[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?$)""", re.S)
_LONGEST_LINE = 2**20
"""Maximum number of characters of a line that are read to find out if a name in single quotes is within a string."""


class EmptyObjects:
    """Finds `{}` in pieces of JSON: Spark infers no column from it."""

    def __init__(self) -> None:
        self.has_any = False
        """True if a piece contains it, maybe as a part of a text."""

    def watch(self, pieces: Iterator[str]) -> Iterator[str]:
        """Yield the pieces unchanged."""
        begun = False
        for piece in pieces:
            self.has_any = self.has_any or bool(_EMPTY_OBJECT.search("{" * begun + piece))
            end = piece.rstrip(WHITESPACE)[-1:]
            begun = end == "{" or (begun and not end)
            yield piece


def without_losses(path: str, pieces: Iterator[str]) -> Iterator[str]:
    """Yield the pieces of a JSON file unchanged.

    Raises:
        InvalidInput: Spark would change or drop a part of a piece.
    """
    waiting, line, begun = "", 1, ""
    for piece in pieces:
        text = waiting + piece
        end = min(_end_of_escapes(text), _end_of_names(text))
        _check(path, text[:end], line, begun)
        begun = (begun + text[:end]).rpartition("\n")[2] if len(begun) <= _LONGEST_LINE else _after_line(text[:end])
        line += text.count("\n", 0, end)
        waiting = text[end:]
        yield piece
    _check(path, waiting, line, begun)


def _after_line(text: str) -> str:
    """Return the beginning of the last line of a text; if none begins there, a text too long to be searched."""
    return text.rpartition("\n")[2] if "\n" in text else " " * (_LONGEST_LINE + 1)


def _end_of_escapes(text: str) -> int:
    """Return the position before an escape that the next piece may continue."""
    tail = text[-_LONG_RUN:]
    if "\\" not in tail:
        return len(text)
    kept = tail.rstrip(_PARTS_OF_ESCAPE)
    return len(text) - len(tail) + len(kept) if kept else len(text.rstrip(_PARTS_OF_ESCAPE))


def _end_of_names(text: str) -> int:
    """Return the position before a name that the next piece may continue."""
    before = text.rstrip(WHITESPACE)
    quotes = 2 if before.endswith(('""', "''")) else 1 if before.endswith(('"', "'")) else 0
    before = before[: len(before) - quotes].rstrip(WHITESPACE)
    return len(before) - 1 if before.endswith(("{", ",")) else len(text)


def _check(path: str, text: str, line: int, begun: str) -> None:
    """Check a part of a file. `begun` is the beginning of its first line, which an earlier part contained."""
    if any(each in text for each in _SURROGATES):
        for match in _WHOLE_OR_LONE.finditer(text):
            if match[1]:
                raise InvalidInput(
                    f"{path}: line {_line_of(match, line):,} contains {match[1]}, which is only half of a character, "
                    "and which Spark would replace by '?': write the whole character, or remove the half"
                )
    for match in _EMPTY_NAME.finditer(text):
        is_name = text[: match.start()].rstrip(WHITESPACE).endswith(("{", ","))
        if is_name and (match[0][0] == '"' or not _is_in_string(begun + text, len(begun) + match.start())):
            raise InvalidInput(
                f"{path}: line {_line_of(match, line):,} has a field with an empty name, which Spark would drop: give "
                "it a name, or remove it"
            )


def _is_in_string(text: str, position: int) -> bool:
    """Return True if a position is within a string of its line, or if the line is too long to know."""
    start = text.rfind("\n", 0, position) + 1
    if position - start > _LONGEST_LINE:
        return True
    before = text[start : position + 1]  # with the quote at the position, which ends no string that began before it
    return any(match.start() < position - start < match.end() for match in _STRING.finditer(before))


def _line_of(match: re.Match[str], first: int) -> int:
    return first + match.string.count("\n", 0, match.start())
