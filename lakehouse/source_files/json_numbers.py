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
        for match in _TOKEN.finditer(text):
            if match.end() >= end:  # the next piece may continue this token
                rest = match.start()
                break
            if match["colon"]:
                name = match["text"]
            elif match["word"] and _is_rounded(match["word"]):
                line += text.count("\n", 0, match.start())
                raise InvalidInput(
                    f"{path}: line {line:,}: Spark would round a number in the field {name[1:-1]}: {advice}, or write "
                    "the number as text"
                )
        line += text.count("\n", 0, rest)
        waiting = text[rest:]
        yield piece


def _is_rounded(word: str) -> bool:
    return _FRACTION.fullmatch(word) is not None and not is_exact_double(word)
