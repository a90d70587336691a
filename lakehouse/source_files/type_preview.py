"""Guess the types of CSV and JSON columns from the first rows, as the built-in job guesses them from all rows."""

import csv
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from lakehouse.source_files.csv_content import CsvFormat
from lakehouse.source_files.headers import BEYOND_HEADERS
from lakehouse.source_files.identify import describe
from lakehouse.source_files.json_types import JsonTypes
from lakehouse.source_files.line_ends import WHITESPACE
from lakehouse.source_files.paths import is_remote
from lakehouse.source_files.records import json_objects
from lakehouse.source_files.text import decoded, stated_encoding
from sluice.contracts.guessed_types import GuessedColumn, GuessedTypes, TypePreview
from sluice.contracts.run_request import InputFile
from sluice.errors import InvalidInput, ServiceUnavailable
from sluice.input.plain_notation import (
    DATES,
    LEAST_INT,
    LEAST_LONG,
    MAX_DIGITS,
    MOST_INT,
    MOST_LONG,
    NUMBERS,
    decimal_type,
    digits_of,
    guess_type,
    is_exact_double,
    looks_numeric,
    notation_of,
)
from sluice.pipeline.source import Source

MOST_FILES, MOST_ROWS = 3, 5_000
"""Maximum number of files, and of rows of each, to read: the start of a run waits for it."""
_MOST_RECORDS = 10_000
"""Maximum number of JSON records in which a value that decides the type of a column is searched for after a load."""
_FEWEST = 20
"""Minimum number of values of a column with a hint."""
_MOST_OTHERS = 0.05
_SHOWN = 40
_LONGEST_LINE = 2**20
_OTHER_TYPES = ("prefersdecimal", "infertimestamp")
"""Options, in small letters, with which Spark infers other types of JSON values."""
_NOTATIONS = {bool: "boolean", int: "whole", float: "fraction", str: "text"}
"""Notations of JSON values. All others are nested."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass
class _Column:
    name: str
    notations: Counter[str] = field(default_factory=Counter)
    """Number of values by their notation."""
    first: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    """The first value of each notation: its file, line and text."""
    least: int = 0
    most: int = 0
    are_double: bool = True
    whole_digits: int = 0
    fraction_digits: int = 0

    def add_json(self, value: object, path: str, line: int) -> None:
        notation = _NOTATIONS.get(type(value), "nested")
        text = "" if notation in self.first else json.dumps(value, ensure_ascii=False)
        self._count(notation, text, path, line)

    def _count(self, notation: str, value: str, path: str, line: int) -> None:
        self.notations[notation] += 1
        self.first.setdefault(notation, (path, line, shortened(value)))

    def add(self, value: str, path: str, line: int) -> None:
        notation = notation_of(value)
        self._count(notation, value, path, line)
        if notation not in NUMBERS:
            return
        whole, fraction = digits_of(value)
        self.whole_digits, self.fraction_digits = max(self.whole_digits, whole), max(self.fraction_digits, fraction)
        self.are_double = self.are_double and is_exact_double(value)
        if notation == "whole":
            value = value if whole <= MAX_DIGITS else f"1{'0' * MAX_DIGITS}"  # too large for any whole type
            self.least, self.most = min(self.least, int(value)), max(self.most, int(value))

    def guessed(self) -> GuessedColumn:
        type = guess_type(
            self.notations.keys(),
            are_int=self.least >= LEAST_INT and self.most <= MOST_INT,
            are_long=self.least >= LEAST_LONG and self.most <= MOST_LONG,
            are_double=self.are_double,
        )
        if type == "DECIMAL":
            type = decimal_type(self.whole_digits, self.fraction_digits)
        if type != "STRING" or "text" not in self.first:
            return GuessedColumn(name=self.name, type=type)
        path, line, value = self.first["text"]
        if len(self.notations) == 1 and not looks_numeric(value):
            return GuessedColumn(name=self.name, type=type)
        return GuessedColumn(name=self.name, type=type, value=value, where=f"{Path(path).name}, line {line:,}")

    def hint(self) -> str | None:
        values = self.notations.total()
        for kind, notations in (("numbers", NUMBERS), ("dates", DATES)):
            fitting = sum(self.notations[each] for each in notations)
            others = values - fitting
            if fitting and others and values >= _FEWEST and others <= _MOST_OTHERS * values:
                path, line, value = self._first_beside(notations)
                return (
                    f"{self.name} is read as text because of {value!r} in {path}, line {line:,}: {fitting:,} of the "
                    f"first {values:,} values are {kind}. Repair the file, or state `schema`"
                )
        return None

    def _first_beside(self, notations: Collection[str]) -> tuple[str, int, str]:
        return next(first for notation, first in self.first.items() if notation not in notations)


def shortened(value: str) -> str:
    """Return a value as messages show it."""
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


def preview_types(source: Source, files: Sequence[InputFile]) -> TypePreview:
    """Guess the types of the columns of CSV or JSON files from their first rows.

    The preview is empty for files of a store, for other formats, and if types are stated.
    """
    options = {key.lower(): value for key, value in source.options.items()}
    if _is_json_with_types(source, options):
        return _preview_json(files, options)
    infers = options.get("inferschema", "true").lower() == "true"
    if source.schema_ or source.reader_format() != "csv" or not infers or any(map(options.get, BEYOND_HEADERS)):
        return TypePreview()
    columns: dict[str, _Column] = {}
    is_whole = len(files) <= MOST_FILES
    for file in files[:MOST_FILES]:
        if is_remote(file.path):
            return TypePreview()
        try:
            is_whole = _read(file.path, options, columns) and is_whole
        except (InvalidInput, csv.Error):  # the error is reported when the file is read
            return TypePreview()
    return TypePreview([column.guessed() for column in columns.values()], _hints(columns), is_whole)


def with_deciding_values(
    types: GuessedTypes, source: Source, files: Sequence[InputFile], *, show_values: bool
) -> GuessedTypes:
    """Return the guessed types of JSON files, with the first text of each column that has other values, too.

    Other formats, and a column without such a text in the first records, stay as they are.
    """
    options = {key.lower(): value for key, value in source.options.items()}
    names = {each.name for each in types.columns if each.type == "STRING"}
    if not names or not _is_json_with_types(source, options):
        return types
    columns: dict[str, _Column] = {}
    try:
        for path, line, record in islice(_records((file.path for file in files), options), _MOST_RECORDS):
            _add_record(columns, path, line, record)
    except (InvalidInput, ServiceUnavailable):  # the files are loaded: nothing depends on these values
        return types
    columns_with_texts = [_with_text(each, columns) for each in types.columns]
    if not show_values:
        columns_with_texts = [each.model_copy(update={"value": ""}) for each in columns_with_texts]
    return types.model_copy(update={"columns": columns_with_texts})


def _is_json_with_types(source: Source, options: Mapping[str, str]) -> bool:
    """Return True if Spark guesses the types of a source from its JSON values, one value per line or file."""
    as_text = options.get("primitivesasstring", "false").lower() == "true"
    return source.reader_format() == "json" and not source.schema_ and not as_text and "linesep" not in options


def _preview_json(files: Sequence[InputFile], options: Mapping[str, str]) -> TypePreview:
    columns: dict[str, _Column] = {}
    types = JsonTypes()
    for file in files[:MOST_FILES]:
        if is_remote(file.path):
            return TypePreview()
        try:
            for path, line, record in islice(_records([file.path], options), MOST_ROWS):
                _add_record(columns, path, line, record)
                types.add(record)
        except (InvalidInput, RecursionError):  # the error is reported when the file is read
            return TypePreview()
    if any(options.get(name, "false").lower() == "true" for name in _OTHER_TYPES):
        return TypePreview(hints=_hints(columns))
    guessed = [_with_text(each, columns) for each in types.columns]
    return TypePreview(guessed, _hints(columns), is_whole=False)


def _with_text(guessed: GuessedColumn, columns: Mapping[str, _Column]) -> GuessedColumn:
    """Return a column of text with the text that decides its type, if it has other values, too."""
    if guessed.type != "STRING" or guessed.name not in columns:
        return guessed
    text = columns[guessed.name].guessed()
    return text if text.where else guessed


def _records(paths: Iterable[str], options: Mapping[str, str]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the records of JSON files, each with its file and line."""
    encoding = stated_encoding(options)
    return ((path, *each) for path in paths for each in json_objects(path, encoding))


def _add_record(columns: dict[str, _Column], path: str, line: int, record: Mapping[str, object]) -> None:
    for name, value in record.items():
        if value is not None:
            columns.setdefault(name, _Column(name)).add_json(value, path, line)


def _hints(columns: Mapping[str, _Column]) -> list[str]:
    return [hint for column in columns.values() if (hint := column.hint())]


def first_records(path: str, options: Mapping[str, str], limit: int) -> list[dict[str, str]]:
    """Return the first rows of a local CSV file that has a header, by column.

    Raises:
        InvalidInput: it is not text in its encoding, or is truncated.
    """
    reader, header = open_rows(path, options)
    return [dict(zip(header, row, strict=False)) for row in islice(reader, limit)] if reader else []


def open_rows(path: str, options: Mapping[str, str]) -> tuple[Any, list[str]]:
    """Return a reader of the rows of a local CSV file, and its header; no reader if the format is not supported.

    Raises:
        InvalidInput: it is not text in its encoding, or is truncated.
    """
    form = CsvFormat.of(options)
    if not form.has_header or len(form.separator) != 1 or len(form.quote) != 1:
        return None, []
    lines = _lines(decoded(path, describe(path).read(), stated_encoding(options)))
    reader = csv.reader(lines, delimiter=form.separator, quotechar=form.quote)
    return reader, next((row for row in reader if "".join(row).strip(WHITESPACE)), [])


def _read(path: str, options: dict[str, str], columns: dict[str, _Column]) -> bool:
    """Add the values of the first rows of a file; return whether it has no more rows."""
    reader, header = open_rows(path, options)
    if reader is None:
        return False
    nulls = {"", options.get("nullvalue", "")}
    for name in header:
        columns.setdefault(name, _Column(name))
    for row in islice(reader, MOST_ROWS):
        for name, value in zip(header, row, strict=False):
            if value not in nulls:
                columns[name].add(value, path, reader.line_num)
    return next(reader, None) is None


def _lines(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a text in pieces, up to a line that is too long for a table."""
    rest = ""
    for number, piece in enumerate(pieces):
        lines = _LINE.findall(rest + piece if number else piece.removeprefix("\ufeff"))
        rest = lines.pop() if lines else ""
        yield from lines
        if len(rest) > _LONGEST_LINE:
            return
    if rest:
        yield rest
