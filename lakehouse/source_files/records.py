"""Read the records of a source file, or find one: by its text, by a repeated key, or because it is no object."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from lakehouse.source_files.identify import describe
from lakehouse.source_files.json_content import beginning_of, begins_one_value
from lakehouse.source_files.line_ends import WHITESPACE, whole_lines, with_uniform_ends
from lakehouse.source_files.text import decoded
from sluice.errors import InvalidInput

_LARGEST_VALUE = 64 * 2**20
"""Maximum number of characters of a file of one JSON value that is searched."""

_SPACE = re.compile(f"[{re.escape(WHITESPACE)}]*")
_DECODER = json.JSONDecoder()


def find_line(path: str, encoding: str, record: str, *, has_header: bool = False) -> int | None:
    """Return the number of the line, from 1, at which a record first begins in a file; None if it does not occur.

    Args:
        has_header: True if the first line is no record, even if it has the same text.
    """
    plain = record.replace("\r\n", "\n").rstrip("\n")
    if not plain:
        return None
    wanted = f"\n{plain}\n"
    lines = 0
    try:
        for text in whole_lines(decoded(path, describe(path).read(), encoding)):
            position = f"\n{text}\n".find(wanted, 1 if has_header and not lines else 0)
            if position >= 0:
                return lines + text.count("\n", 0, position) + 1
            lines += text.count("\n")
    except InvalidInput:  # another problem of the file, reported elsewhere
        return None
    return None


def json_objects(path: str, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON file with their lines. Text that Python does not read as JSON is left out.

    Raises:
        InvalidInput: the file is not text in that encoding, or is truncated.
    """
    pieces = decoded(path, describe(path).read(), encoding, is_json=True)
    start, before = beginning_of(pieces)
    is_one_value = begins_one_value(start)
    texts = whole_lines(chain([start], pieces))
    values = _values_in(_value_of(path, encoding)) if is_one_value else _values_of_lines(texts, before)
    yield from ((line, value) for line, value in values if isinstance(value, dict))


def _values_of_lines(texts: Iterable[str], before: int) -> Iterator[tuple[int, object]]:
    number = before
    for text in texts:
        for line in text.removesuffix("\n").split("\n"):
            number += 1
            yield from ((number, value) for _, value in _values_in(line))


def find_non_object(paths: Iterable[str], encoding: str) -> str | None:
    """Return a sentence that names the first element of an array over several lines that is no object, or None."""
    for path in paths:
        try:
            text = _value_of(path, encoding)
        except InvalidInput:  # another problem of the file, reported elsewhere
            continue
        if odd := _non_object(text):
            line, kind = odd
            return (
                f"{path}, line {line:,}: an element of the array is {kind}, but each must be a JSON object, such as "
                '{"id": 1}: correct or remove it'
            )
    return None


def _value_of(path: str, encoding: str) -> str:
    """Return the text of a file; empty if it is too large to be searched."""
    pieces, size = list[str](), 0
    for piece in decoded(path, describe(path).read(), encoding):
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST_VALUE:
            return ""
    return with_uniform_ends("".join(pieces).removeprefix("\ufeff"))


def _non_object(text: str) -> tuple[int, str] | None:
    """Return the line and the kind of the first element of an array that is no object."""
    values = _values_in(text) if text.lstrip(WHITESPACE).startswith("[") else ()
    return next(((line, _kind(value)) for line, value in values if not isinstance(value, dict)), None)


def _values_in(text: str) -> Iterator[tuple[int, object]]:
    """Yield the elements of an array with their lines, or the only value, up to text that Python does not read."""
    at = counted = len(text) - len(text.lstrip(WHITESPACE))
    line = text.count("\n", 0, at) + 1
    is_array = text.startswith("[", at)
    while text[at : at + 1] in ("[", ",") or not is_array:
        at = _SPACE.match(text, at + is_array).end()  # type: ignore[union-attr]  # it matches no character, too
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):  # empty, or a dialect of JSON that options of Spark allow
            return
        line, counted = line + text.count("\n", counted, at), at
        yield line, value
        if not is_array:
            return
        at = _SPACE.match(text, end).end()  # type: ignore[union-attr]  # it matches no character, too


def _kind(value: object) -> str:
    """Return the kind of a value. The value itself is not quoted: it may be one of a row."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
    return "an array"


class _RepeatedKeyError(Exception):
    """An object of JSON has a key twice."""


def find_repeated_key(paths: Iterable[str], encoding: str) -> str | None:
    """Return a sentence that names the first JSON file in which an object has a key twice, or None if none does."""
    for path in paths:
        try:
            line, key = _repeated_key(path, encoding)
        except InvalidInput:  # another problem of the file, reported elsewhere
            continue
        if key is not None:
            where = f", line {line:,}" if line else ""
            return (
                f"{path}{where}: an object has the key {json.dumps(key, ensure_ascii=False)} twice: rename one of them"
            )
    return None


def _repeated_key(path: str, encoding: str) -> tuple[int, str | None]:
    """Return the line and the name of a key that an object has twice. Line 0 means a value over several lines."""
    number, size, seen = 0, 0, list[str]()
    for text in whole_lines(decoded(path, describe(path).read(), encoding)):
        size += len(text)
        seen.append(text)
        if size > _LARGEST_VALUE:
            seen.clear()
        for line in text.removesuffix("\n").split("\n"):
            number += 1
            if (key := _key_in(line)) is not None:
                return number, key
    return 0, _key_in("".join(seen))


def _key_in(text: str) -> str | None:
    try:
        json.loads(text, object_pairs_hook=_refuse_repeated)
    except _RepeatedKeyError as error:
        return str(error)
    except (ValueError, RecursionError):  # a part of a value over several lines
        pass
    return None


def _refuse_repeated(pairs: list[tuple[str, object]]) -> None:
    keys = set[str]()
    for key, _ in pairs:
        if key in keys:
            raise _RepeatedKeyError(key)
        keys.add(key)
