"""Read JSON files before Spark does: values line by line, or one array or object over several lines.

Spark reads one value from a line, or one from a file, and silently drops the rest.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from lakehouse.source_files.json_numbers import without_rounded_numbers
from lakehouse.source_files.line_ends import WHITESPACE, whole_lines, with_line_feeds
from lakehouse.source_files.text import is_compressed
from sluice.errors import InvalidInput
from sluice.pipeline.encodings import ENCODINGS_WITH_MARK, READ_AS_UTF_8, UTF_8

_START = 64 * 1024
"""Number of characters read to decide if the first line contains a whole value."""
_OPENING, _CLOSING = ("{", "["), ("}", "]")
_AFTER_VALUE = WHITESPACE + ","
"""Characters that may follow the value of a line."""
_KINDS = {'"': "a text", **dict.fromkeys("-0123456789", "a number")}
"""Kinds of JSON values that are no objects, by their first character."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.S)
_NO_BRACKETS = bytes(each for each in range(256) if chr(each) not in "[]{}")
_NO_SHAPE = bytes(each for each in range(256) if chr(each) not in '[]{}"\n')
_BRACES = bytes.maketrans(b"[]", b"{}")
_DEEPEST = 1000
"""Maximum nesting of a value. Spark 4.1 refuses a deeper one."""
_ONE_VALUE = b"(}"
"""Shape of a line in which the first bracket and the last one enclose all others."""


@dataclass(frozen=True)
class JsonContent:
    """Facts about the content of a JSON file."""

    is_one_value: bool
    """True if it is one array or object over several lines, instead of one value per line."""
    rows: int | None
    """Number of rows that Spark must read; None if an array hides it."""


def read_json(path: str, pieces: Iterator[str], encoding: str = UTF_8, end: str | None = None) -> JsonContent:
    """Read a whole file.

    Args:
        end: the text that ends a line, if the pipeline states it.

    Raises:
        InvalidInput: Spark would drop or round a part of it, or does not read its lines in this encoding.
    """
    is_utf_8 = encoding.upper() in READ_AS_UTF_8
    if end is not None:
        check_line_encoding(path, encoding, has_line_end=True)
        pieces = with_line_feeds(pieces, end)
        if not is_utf_8:
            pieces = without_rounded_numbers(path, pieces, _conversion(encoding))
        return _read_lines(path, whole_lines(pieces), before=0)
    start, before = beginning_of(pieces)
    pieces = chain([start], pieces)
    if not begins_one_value(start):
        check_line_encoding(path, encoding, has_line_end=False)
        return _read_lines(path, whole_lines(pieces), before)
    if not is_utf_8 or is_compressed(path):
        advice = "write one value in each line, or decompress the file" if is_utf_8 else _conversion(encoding)
        pieces = without_rounded_numbers(path, pieces, advice, before=before)
    _read_one_value(path, pieces, before)
    return JsonContent(is_one_value=True, rows=None)


def beginning_of(pieces: Iterator[str]) -> tuple[str, int]:
    """Read from a file until it is clear what it contains.

    Returns:
        The text from the first value on, and the number of empty lines before it.
    """
    start = ""
    breaks: Counter[str] = Counter()
    for piece in pieces:
        begun = start + piece
        start = begun.lstrip("\ufeff").lstrip(WHITESPACE)
        breaks.update(each for each in begun[: len(begun) - len(start)] if each in "\r\n")
        if len(start) >= _START:
            break
    return start, max(breaks.values(), default=0)


def check_beginning(path: str, text: str, encoding: str, *, has_line_end: bool) -> None:
    """Verify what the first text of a file shows: its lines are objects, in an encoding in which Spark reads lines.

    Args:
        has_line_end: True if the pipeline states the text that ends a line.

    Raises:
        InvalidInput: the run would refuse the file.
    """
    start = text.lstrip("\ufeff").lstrip(WHITESPACE)
    if has_line_end or not begins_one_value(start):
        check_line_encoding(path, encoding, has_line_end=has_line_end)
    if not has_line_end and not begins_one_value(start):
        _check_objects(path, 0, text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))


def begins_one_value(start: str) -> bool:
    """Return True if a text begins one array or object over several lines."""
    line = start.replace("\r", "\n").split("\n", 1)[0]
    return start.startswith(_OPENING) and not (_is_whole(line) if len(line) < len(start) else start.startswith("{"))


def check_line_encoding(path: str, encoding: str, *, has_line_end: bool) -> None:
    """Verify that Spark reads JSON line by line in an encoding.

    Args:
        has_line_end: True if the pipeline states the text that ends a line.

    Raises:
        InvalidInput: Spark does not read lines in this encoding.
    """
    if encoding.upper() in READ_AS_UTF_8:
        return
    convert = _conversion(encoding)
    if encoding.upper() in ENCODINGS_WITH_MARK:
        raise InvalidInput(f"{path}: Spark does not read lines of JSON in {encoding}: {convert}")
    if not has_line_end:
        raise InvalidInput(
            f"{path}: Spark reads lines of JSON in {encoding} only if their end is stated: set source.options.lineSep "
            f'to "\\n", or {convert}'
        )


def _conversion(encoding: str) -> str:
    return f"convert the file, for example by `iconv -f {encoding} -t {UTF_8}`"


def _read_lines(path: str, texts: Iterator[str], before: int) -> JsonContent:
    """Read values line by line, after as many empty lines as `before` says."""
    rows: int | None = 0
    number = before
    for text in texts:
        full = [line for each in text.split("\n") if (line := each.strip(WHITESPACE))]
        first, last = {line[0] for line in full}, {line[-1] for line in full}
        if not first.issubset(_OPENING):
            _check_objects(path, number, text)
        rows = None if rows is None or "[" in first else rows + len(full)
        shapes = _shapes(text)
        if not last.issubset(_CLOSING) or shapes.replace(b"\n" + _ONE_VALUE, b"").strip(b"\n"):
            _check_single(path, number, text, shapes[1:].split(b"\n"))
        number += text.count("\n")
    return JsonContent(is_one_value=False, rows=rows)


def _check_objects(path: str, before: int, text: str) -> None:
    """Verify that each line begins like an object or an array. `before` lines of the file precede the text.

    The message names the kind of a value instead of quoting it: it may be a value of a row.

    Raises:
        InvalidInput: a line begins otherwise.
    """
    for number, line in enumerate(text.split("\n"), before + 1):
        start = line.strip(WHITESPACE)
        if start and start[0] not in _OPENING:
            kind = "null" if start == "null" else _KINDS.get(start[0], "other text")
            raise InvalidInput(
                f"{path}: line {number:,} is {kind}, but each line must be a JSON object, such as "
                '{"id": 1}: correct or remove the line'
            )


def _check_single(path: str, before: int, text: str, shapes: Sequence[bytes]) -> None:
    """Verify that each line contains one value. `before` lines of the file precede the text.

    Only lines whose shape does not prove it are parsed, which takes much longer.

    Raises:
        InvalidInput: a line contains more than one value.
    """
    for number, (line, shape) in enumerate(zip(text.split("\n"), shapes, strict=True), before + 1):
        is_proved = shape == _ONE_VALUE and line.rstrip(_AFTER_VALUE).endswith(_CLOSING)
        if not is_proved and not _is_one(line):
            raise InvalidInput(
                f"{path}: line {number:,} contains more than one JSON value, but Spark reads only the first: write "
                "one value in each line, or one array"
            )


def _shapes(text: str) -> bytes:
    """Return the shapes of the lines of a text, each after a line break: their brackets without inner pairs.

    The first bracket becomes `(`, so that a pair after its value stays: `(}{}`. A string without brackets leaves two
    quotes, which are removed; the quotes of another string stay.
    """
    plain = text.replace("\\\\", "").replace('\\"', "")
    marks = plain.encode("ascii", "ignore").translate(_BRACES, _NO_SHAPE).replace(b'""', b"")
    shapes = (b"\n" + marks).replace(b"\n{", b"\n(")
    for _ in range(_DEEPEST):
        shorter = shapes.replace(b"{}{}", b"{}").replace(b"{{}", b"{").replace(b"({}", b"(")
        if len(shorter) == len(shapes):
            break
        shapes = shorter
    return shapes


def _is_one(line: str) -> bool:
    """Return True if a line contains exactly one value, except for commas and brackets after it."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):  # more than one, or a dialect of JSON that options of Spark allow
        return not line[_end_of_value(line, 0) :].strip(_AFTER_VALUE + "}]")
    return True


def _is_whole(line: str) -> bool:
    """Return True if a line contains the whole of the value that it begins with."""
    depth = 0
    for match in _TOKEN.finditer(line):
        depth += 1 if match[0] in "[{" else -1 if match[0] in "]}" else 0
        if depth == 0:
            return True
    return False


def _read_one_value(path: str, texts: Iterator[str], before: int) -> None:
    """Read one array or object after `before` empty lines.

    Raises:
        InvalidInput: the value has no end, or something follows it, or it is nested too deep.
    """
    open_brackets = waiting = ""
    in_string = ended = False
    line = before + 1
    for text in texts:
        if ended:
            _check_rest(path, text, line)
            line += text.count("\n")
            continue
        whole = ('"' if in_string else "") + waiting + text
        cut = len(whole.rstrip("\\"))  # a backslash at the end escapes a character of the next piece
        whole, waiting = whole[:cut], whole[cut:]
        parts = whole.replace("\\\\", "").replace('\\"', "").split('"')
        in_string = len(parts) % 2 == 0
        brackets = open_brackets + _brackets(parts[::2])
        inner = _reduced(path, brackets[1:])
        if inner[:1] in ("]", "}"):
            ended = True
            end = _end_of_value(whole, len(open_brackets))
            _check_rest(path, whole[end:] + waiting, line + whole.count("\n", 0, end))
        else:
            open_brackets = brackets[:1] + inner
        line += text.count("\n")
    if not ended:
        raise InvalidInput(f"{path} is truncated: its JSON value has no end. Write the whole file again")


def _brackets(parts: list[str]) -> str:
    """Return the brackets of the text outside of strings."""
    return "".join(parts).encode("ascii", "ignore").translate(None, _NO_BRACKETS).decode("ascii")


def _reduced(path: str, brackets: str) -> str:
    """Remove matching pairs of brackets until none is left.

    Raises:
        InvalidInput: they are nested deeper than Spark reads.
    """
    for _ in range(_DEEPEST + 1):
        shorter = brackets.replace("{}", "").replace("[]", "")
        if len(shorter) == len(brackets) <= _DEEPEST:
            return brackets
        brackets = shorter
    raise InvalidInput(f"{path}: a value is nested more than {_DEEPEST:,} levels deep: flatten it, or write it as text")


def _end_of_value(text: str, depth: int) -> int:
    """Return the position after the bracket that closes the value.

    Args:
        depth: the number of open brackets at the start of the text.
    """
    for match in _TOKEN.finditer(text):
        token = match[0]
        depth += 1 if token in "[{" else -1 if token in "]}" else 0
        if depth == 0:
            return match.end()
    return len(text)


def _check_rest(path: str, text: str, line: int) -> None:
    """Verify that nothing follows the value of a file. The text begins on a line of the file."""
    if rest := text.lstrip(WHITESPACE):
        line += text[: len(text) - len(rest)].count("\n")
        raise InvalidInput(
            f"{path} contains more than one JSON value, but Spark reads only the first; the next begins on line "
            f"{line:,}: write one value in each line, or one array"
        )
