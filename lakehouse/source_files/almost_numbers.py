"""Columns of CSV files that are text because of a few values, and numbers otherwise: mostly a slip in the file."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lakehouse.source_files.columns import BEYOND_HEADERS
from lakehouse.source_files.csv_content import WHITESPACE, CsvFormat
from lakehouse.source_files.identify import describe
from lakehouse.source_files.paths import is_remote
from lakehouse.source_files.text import decoded, stated_encoding
from sluice.contracts.run import InputFile
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source

_FILES, _ROWS = 3, 5_000
"""So many files, and rows of each, are looked at: a start waits for it."""
_FEWEST = 20
"""So many values of a column are looked at at least, before it is said to look like numbers."""
_MOST_OTHERS = 0.05
_SHOWN = 40
_NUMBER = re.compile(r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|NaN|Inf|Infinity)\s*")


@dataclass
class _Column:
    name: str
    numbers: int = 0
    others: int = 0
    first_other: str = ""

    def hint(self) -> str | None:
        values = self.numbers + self.others
        if not self.others or values < _FEWEST or self.others > _MOST_OTHERS * values:
            return None
        return (
            f"{self.name} is read as text, although {self.numbers:,} of the first {values:,} values are numbers: "
            f"{self.first_other} is none. Repair the file, or state `schema`"
        )


def hints_on_almost_numbers(source: Source, files: Sequence[InputFile]) -> list[str]:
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
        except (InvalidInput, csv.Error):  # what is wrong with the file is said when it is read
            return []
    return [hint for column in columns.values() if (hint := column.hint())]


def _count(path: str, options: dict[str, str], columns: dict[str, _Column]) -> None:
    """Count the numbers and the other values in the first rows of a file."""
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
            column = columns.setdefault(name, _Column(name))
            if _NUMBER.fullmatch(value):
                column.numbers += 1
                continue
            column.others += 1
            shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
            column.first_other = column.first_other or f"{path}, line {reader.line_num}: {shown!r}"


def _lines(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in pieces."""
    rest = ""
    for number, piece in enumerate(pieces):
        lines = ((rest + piece) if number else piece.removeprefix("\ufeff")).splitlines(keepends=True)
        rest = lines.pop() if lines else ""
        yield from lines
    if rest:
        yield rest
