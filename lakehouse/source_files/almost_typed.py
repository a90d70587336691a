"""Columns of CSV files that a few values make text, and that are numbers or dates otherwise."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice

from lakehouse.source_files.csv_content import WHITESPACE, CsvFormat
from lakehouse.source_files.headers import BEYOND_HEADERS
from lakehouse.source_files.identify import describe
from lakehouse.source_files.paths import is_remote
from lakehouse.source_files.text import decoded, stated_encoding
from sluice.contracts.run import InputFile
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source

_FILES, _ROWS = 3, 5_000
"""So many files, and rows of each, are looked at: a start waits for it."""
_FEWEST = 20
"""Of a column with fewer values than this, no hint is given."""
_MOST_OTHERS = 0.05
_SHOWN = 40
_LONGEST_LINE = 2**20
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?(?:Z|[+-]\d\d(?::\d\d)?)?)?", re.ASCII)


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def _is_date(value: str) -> bool:
    """Return True for a date or time of a day that exists."""
    match = _DATE.fullmatch(value)
    try:
        return match is not None and bool(date.fromisoformat(match[1]))
    except ValueError:
        return False


_KINDS: dict[str, Callable[[str], bool]] = {"numbers": _is_number, "dates": _is_date}
"""The types that a column has if all its values have their notation (`spark_jobs/guessed_types.py`)."""


@dataclass
class _Column:
    name: str
    values: int = 0
    fitting: Counter[str] = field(default_factory=Counter)
    """How many values are of each kind."""
    first_others: dict[str, str] = field(default_factory=dict)
    """The first value that is not of a kind, with its line."""

    def add(self, value: str, path: str, line: int) -> None:
        self.values += 1
        for kind, fits in _KINDS.items():
            if fits(value):
                self.fitting[kind] += 1
            elif kind not in self.first_others:
                shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
                self.first_others[kind] = f"{path}, line {line}: {shown!r}"

    def hint(self) -> str | None:
        for kind, number in self.fitting.items():
            others = self.values - number
            if others and self.values >= _FEWEST and others <= _MOST_OTHERS * self.values:
                return (
                    f"{self.name} is read as text, although {number:,} of the first {self.values:,} values are {kind}: "
                    f"{self.first_others[kind]} is none. Repair the file, or state `schema`"
                )
        return None


def hints_on_almost_typed(source: Source, files: Sequence[InputFile]) -> list[str]:
    """Return what to say of columns that a few values of the first rows make text.

    Nothing is known of files of a store, of other formats than CSV, and of columns whose types are stated.
    """
    options = {key.lower(): value for key, value in source.options.items()}
    infers = options.get("inferschema", "true").lower() == "true"
    if source.schema_ or source.reader_format() != "csv" or not infers or any(map(options.get, BEYOND_HEADERS)):
        return []
    columns: dict[str, _Column] = {}
    for file in files[:_FILES]:
        if is_remote(file.path):
            return []
        try:
            _count(file.path, options, columns)
        except (InvalidInput, csv.Error):  # the error is reported when the file is read
            return []
    return [hint for column in columns.values() if (hint := column.hint())]


def _count(path: str, options: dict[str, str], columns: dict[str, _Column]) -> None:
    """Count the values of each kind in the first rows of a file."""
    form = CsvFormat.of(options)
    if not form.has_header or len(form.separator) != 1 or len(form.quote) != 1:
        return
    lines = _lines(decoded(path, describe(path).read(), stated_encoding(options)))
    reader = csv.reader(lines, delimiter=form.separator, quotechar=form.quote)
    nulls = {"", options.get("nullvalue", "")}
    header = next((row for row in reader if "".join(row).strip(WHITESPACE)), [])
    for row in islice(reader, _ROWS):
        for name, value in zip(header, row, strict=False):
            if value.strip() in nulls:
                continue
            columns.setdefault(name, _Column(name)).add(value, path, reader.line_num)


def _lines(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in pieces, up to a line that is too long to be one of a table."""
    rest = ""
    for number, piece in enumerate(pieces):
        lines = _LINE.findall(rest + piece if number else piece.removeprefix("\ufeff"))
        rest = lines.pop() if lines else ""
        yield from lines
        if len(rest) > _LONGEST_LINE:
            return
    if rest:
        yield rest
