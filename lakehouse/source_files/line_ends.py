"""Lines of text files, and their ends: LF, CRLF or CR.

Spark's parser takes the first line break of a file, even one within quotes, as the end of all lines. It turns that end
into LF within quoted values, and keeps the CR of a line that ends otherwise. With the option `lineSep`, it changes no
value.
"""

import re
from collections.abc import Iterator, Sequence

from sluice.errors import InvalidInput

NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}
"""Ends of lines, with their names in messages."""
OTHER_BREAK = "\x1e"
"""Character in place of a line break that ends no line. Like a line break, it is white space."""
WHITESPACE = "".join(map(chr, range(33)))
"""Characters that Spark trims to find empty lines, which it does not count as rows."""
_END = re.compile(r"\r\n|\r|\n")


def whole_lines(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the text in pieces of whole lines, with uniform line breaks and without the byte order mark."""
    yield from map(with_uniform_ends, original_lines(pieces))


def with_uniform_ends(text: str) -> str:
    """Return a text whose lines end with LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def original_lines(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the text in pieces of whole lines, without the byte order mark."""
    waiting: list[str] = []
    first, held_back = True, ""
    for piece in pieces:
        text = held_back + piece
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        held_back = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r") if held_back else text
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        if end:
            yield "".join([*waiting, text[:end]])
            waiting = []
        if text[end:]:
            waiting.append(text[end:])
    if waiting or held_back:
        yield "".join([*waiting, held_back])


def ends_of(text: str) -> Sequence[str]:
    """Return the ends of the lines of a text."""
    if "\r" not in text:
        return ["\n"] * text.count("\n")
    return _END.findall(text)


def with_stated_end(path: str, pieces: Iterator[str], end: str, quote: str) -> Iterator[str]:
    """Yield text whose lines end with LF instead of a stated end. No other line break remains in it.

    Raises:
        InvalidInput: the first row ends otherwise. The first other line break outside of quotes shows it, so that a
            file in which the stated end never occurs is not read whole.
    """
    texts = with_line_feeds(pieces, end)
    is_quoted = is_row = has_other_break = False
    for text in texts:
        for number, line in enumerate(text.split("\n")):
            if number and is_row:
                yield text
                yield from texts
                return
            if number:
                is_quoted = has_other_break = False
            parts = line.split(quote) if quote else [line]
            has_other_break |= any(OTHER_BREAK in part for part in parts[is_quoted::2])
            is_quoted ^= len(parts) % 2 == 0
            is_row |= bool(line.strip(f"\ufeff{WHITESPACE}"))
            if has_other_break and is_row:
                raise InvalidInput(
                    f"{path}: the first row does not end with {NAMES[end]}, as source.options.lineSep states: leave "
                    "the option out"
                )
        yield text


def with_line_feeds(pieces: Iterator[str], end: str) -> Iterator[str]:
    """Yield text whose lines end with LF instead of a stated end. No other line break remains in it."""
    begun = [end[:length] for length in range(len(end) - 1, 0, -1)]
    held_back = ""
    for piece in pieces:
        *lines, last = (held_back + piece).split(end)
        held_back = next((each for each in begun if last.endswith(each)), "")
        yield "\n".join(_END.sub(OTHER_BREAK, line) for line in [*lines, last.removesuffix(held_back)])
    yield _END.sub(OTHER_BREAK, held_back)


class LineEnds:
    """The ends of the records of a file. A line break within quotes is no such end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._first = ""
        self._others: dict[str, int] = {}
        """Ends that differ from the first, with the first line of each."""

    def add(self, line: int, ends: Sequence[str]) -> None:
        """Add the ends of consecutive lines.

        Args:
            line: the number of the first of these lines in the file.
        """
        for end in dict.fromkeys(ends):
            self._first = self._first or end
            if end != self._first and end not in self._others:
                self._others[end] = line + ends.index(end)

    def common(self, last: int, remedy: str = "") -> str:
        """Return the line end of all records; empty if no record has one.

        Args:
            last: the number of the last line that is not empty. Spark skips empty lines after it that end with LF if
                the records end with CRLF.
            remedy: the beginning of the sentence about what to do if records have different ends.

        Raises:
            InvalidInput: records have different ends.
        """
        others = [(line, end) for end, line in self._others.items() if not self._is_skipped(line, end, last)]
        if not others:
            return self._first
        line, end = min(others)
        raise InvalidInput(
            f"{self._path}: line {line:,} ends with {NAMES[end]}, and the lines before it end with "
            f"{NAMES[self._first]}, so Spark would read other values: {remedy}write the same line break at the end of "
            "each row"
        )

    def _is_skipped(self, line: int, end: str, last: int) -> bool:
        return line > last and (self._first, end) == ("\r\n", "\n")
