"""Refuse numbers of JSON that Spark rounds: in some files, it reads each fraction as a DOUBLE first.

Spark keeps the digits of numbers in lines of UTF-8, and in files of one value that are UTF-8 and not compressed.
"""

import re
from collections.abc import Iterator

from lakehouse.source_files.line_ends import WHITESPACE
from sluice.errors import InvalidInput
from sluice.input.plain_notation import is_exact_double

_TOKEN = re.compile(
    r"""(?P<text>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?\Z))(?P<colon>\s*:)?"""
    r"""|(?P<word>[\w.+-]+)""",
    re.S | re.ASCII,
)
"""A text, the name of a field, or a word such as a number. Spark accepts single quotes by default."""
_FRACTION = re.compile(r"-?\d+(?=[.eE])(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
"""A number that is not written as a whole number. Spark keeps the digits of whole numbers."""
_LONG = re.compile(r"[\d.](?<![\d.]{2})(?:[\d.]{16,}(?:[eE][+-]?\d+)?|[\d.]{,15}[eE][+-]?\d+)", re.ASCII)
"""A number that a DOUBLE may round, without its sign: it has 17 characters, or an exponent."""


def without_rounded_numbers(path: str, pieces: Iterator[str], advice: str, *, before: int = 0) -> Iterator[str]:
    """Yield the pieces of a JSON file unchanged.

    Args:
        advice: what the user should do to the file.
        before: number of lines before the first piece.

    Raises:
        InvalidInput: a DOUBLE does not represent a number exactly.
    """
    waiting, name, line = "", "", before + 1
    for piece in pieces:
        text = waiting + piece
        end, rest = len(text.rstrip(WHITESPACE)), len(text)
        for match in _TOKEN.finditer(text, _first_position(text)):
            if match.end() >= end:  # the next piece may continue this token
                rest = match.start()
                break
            if match["colon"]:
                name = match["text"]
            elif match["word"] and _is_rounded(match["word"]):
                line += text.count("\n", 0, match.start())
                field = f" in the field {name[1:-1]}" if name else ""
                raise InvalidInput(
                    f"{path}: line {line:,}: Spark would round a number{field}: {advice}, or write the number as text"
                )
        line += text.count("\n", 0, rest)
        waiting = text[rest:]
        yield piece


def _first_position(text: str) -> int:
    """Return the position of the last name in a text, or 0 if a number may be rounded.

    The numbers of the next part may belong to that name.

    Args:
        text: a part of a file that begins outside of strings.
    """
    parts = text.replace("\\\\", "__").replace('\\"', "__").split('"')
    outside = '"'.join(parts[::2])
    has_single_quotes = "'" in outside  # then a quote may be a part of a string
    if has_single_quotes or any(_is_rounded(match[0]) for match in _LONG.finditer(outside)):
        return 0
    start = len(text)
    for number in range(len(parts) - 1, 0, -1):
        start -= len(parts[number]) + 1
        is_string = number % 2 == 1
        if is_string and parts[number + 1 : number + 2] and parts[number + 1].lstrip(WHITESPACE).startswith(":"):
            return start
    return 0


def _is_rounded(word: str) -> bool:
    return _FRACTION.fullmatch(word) is not None and not is_exact_double(word)
