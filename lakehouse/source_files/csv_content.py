"""Read CSV files before Spark does: count records, and find quoted values that span lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakehouse.source_files.line_ends import (
    NAMES,
    WHITESPACE,
    LineEnds,
    ends_of,
    original_lines,
    with_stated_end,
    with_uniform_ends,
)
from lakehouse.source_files.text import stated_encoding
from sluice.errors import InvalidInput
from sluice.pipeline.encodings import WIDE_ENCODINGS

_CONTROLS = "".join(character for character in WHITESPACE if character not in "\0\t\n\r ")
"""Other characters than spaces, tabs and line breaks that Spark trims from values."""


@dataclass(frozen=True)
class CsvContent:
    """Facts about the content of a CSV file."""

    rows: int
    """Number of rows that Spark must read."""
    spans_lines: bool
    """True if the file must be read whole and not line by line: a quoted value contains a line break, or a row has only
    separators that look like an empty line to Spark."""
    first_line: str
    """First non-empty line; empty if there is none."""
    line_end: str = ""
    """End of the rows of a file that must be read whole: LF, CRLF or CR; empty if Spark must detect it."""


@dataclass(frozen=True)
class CsvFormat:
    """Separator, quote and header of a CSV file, from the options of Spark's reader."""

    separator: str
    quote: str
    has_header: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "CsvFormat":
        """Return the format stated by options whose names are in small letters."""
        return cls(
            separator=options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t"),
            quote=options.get("quote", '"').strip("\0"),
            has_header=options.get("header", "true").lower() == "true",
        )


class CsvReader:
    """Reader of a file as in RFC 4180, with the separator and quotes of the options, that counts its records."""

    def __init__(self, path: str, options: Mapping[str, str], *, is_read_whole: bool = False) -> None:
        """Prepare to read a file.

        Args:
            is_read_whole: True if Spark reads each file whole, whatever its content.
        """
        format = CsvFormat.of(options)
        self._path = path
        self._separator, self._quote, self._has_header = format.separator, format.quote, format.has_header
        self._escape = options.get("escape", self._quote)
        self._escape_stated = "escape" in options
        self._quoted = _quoted_field(self._separator, self._quote, self._escape) if self._quote else None
        self._records = self._lines = 0
        self._empty_line = 0  # the number of the first empty line after a record
        self._last_line = 0  # the number of the last line that is not empty
        self._gap = 0  # the same number, once another record follows
        self._inside = self._spans = False
        self._columns = self._opened = 0
        self._first_line = ""
        self._lenient = "unescapedquotehandling" in options
        self._is_white = not self._separator.strip(WHITESPACE)  # then a line of separators is a row of empty values
        self._is_read_whole = is_read_whole
        self._trimmed = _trimmed_controls(self._separator, options)
        is_wide = stated_encoding(options).startswith(WIDE_ENCODINGS)  # then Spark reads the file whole in any case
        self._remedy = "" if is_wide or "multiline" not in options else "leave out source.options.multiLine, or "
        self._ends, self._stated_end = LineEnds(path), options.get("linesep", "")

    def read(self, pieces: Iterator[str]) -> CsvContent:
        """Read the whole file.

        Raises:
            InvalidInput: a quote is not closed, text follows a closing quote, or its rows are ambiguous.
        """
        if self._stated_end:
            pieces = with_stated_end(self._path, pieces, self._stated_end, self._quote)
        for text in original_lines(pieces):
            self._read_lines(with_uniform_ends(text), ends_of(text))
        if self._inside:
            raise InvalidInput(
                f"{self._path}: a quoted value that begins on line {self._opened:,} is never closed: close it, or "
                "double a quote that belongs to the value"
            )
        if self._columns == 1 and self._gap:
            raise InvalidInput(
                f"{self._path}: line {self._gap:,} is empty in a file of one column, and Spark leaves it out: write an "
                f"empty value as {self._quote * 2}, or remove the line"
            )
        return CsvContent(max(self._records - self._has_header, 0), self._spans, self._first_line, self._line_end())

    def _line_end(self) -> str:
        """Return the end of the rows if Spark must know it.

        Raises:
            InvalidInput: rows end otherwise than stated, or in two ways, or Spark would change a line break in a value.
        """
        if self._stated_end:
            return self._stated_end
        if not (self._spans or self._is_read_whole):
            return ""
        end = self._ends.common(self._last_line, "" if self._spans else self._remedy)
        if self._spans and not end:
            return "\n"  # with this line end, Spark changes no value
        if not self._lenient or len(end) == 1:
            return end
        if end and self._spans:  # with lineSep, Spark would add CR to a value with text after its closing quote
            raise InvalidInput(
                f"{self._path}: values contain line breaks, and rows end with {NAMES[end]}, so Spark would change the "
                "line breaks: leave out source.options.unescapedQuoteHandling, or write LF at the end of each row"
            )
        return ""

    def _read_lines(self, text: str, ends: Sequence[str]) -> None:
        """Read whole lines: all at once if no quote is open, else line by line.

        Args:
            ends: the ends of the lines in the file.
        """
        self._check_trimmed(text)
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        if rows := text.rstrip("\n"):
            self._last_line = self._lines + rows.count("\n") + 1
        if not self._columns:
            header = next((line for line in lines if line.strip(WHITESPACE)), "")
            self._columns = header.count(self._separator) + 1 if header else 0
            self._first_line = header.removeprefix("\ufeff")
        if not self._quote or self._quote not in text:
            if self._inside:
                self._lines += len(lines)
                return
            self._ends.add(self._lines + 1, ends)
            self._count(lines)
            return
        if not self._escape_stated and f"\\{self._quote}" in text:
            number = self._lines + 1 + text[: text.index(f"\\{self._quote}")].count("\n")
            raise InvalidInput(
                f"{self._path}: line {number:,} contains \\{self._quote}, which has two meanings: set "
                f"source.options.escape to '\\' if it is an escaped quote, or to '{self._quote}' if quotes are doubled"
            )
        is_in_pairs = self._escape == self._quote or len(set(ends)) <= 1
        has_gap = self._columns == 1 and not all(line.strip(WHITESPACE) for line in lines)  # it may be within quotes
        is_fast = is_in_pairs and not self._inside and not has_gap
        if is_fast and (outside := self._outside_of_quotes(text)) is not None:
            if outside.count("\n") != text.count("\n"):
                self._spans = True
            self._add_ends_outside_of_quotes(text, ends)
            before = self._lines
            self._count(outside.removesuffix("\n").split("\n"))
            self._lines = before + len(lines)
            return
        for number, line in enumerate(lines):
            self._read_line(line)
            if not self._inside:
                self._ends.add(self._lines, ends[number : number + 1])

    def _check_trimmed(self, text: str) -> None:
        """Check that Spark trims spaces and tabs alone.

        Raises:
            InvalidInput: it would remove a control character.
        """
        for match in filter(None, (pattern.search(text) for pattern in self._trimmed)):
            line = self._lines + 1 + text.count("\n", 0, match.start(1))
            raise InvalidInput(
                f"{self._path}: line {line:,} has the control character U+{ord(match[1]):04X} at an end of a value, "
                "which Spark would remove like a space: leave out source.options.ignoreLeadingWhiteSpace and "
                "ignoreTrailingWhiteSpace, and trim the value by a transform"
            )

    def _add_ends_outside_of_quotes(self, text: str, ends: Sequence[str]) -> None:
        """Add the ends of the records of whole lines. If these lines have different ends, their quotes are in pairs."""
        if len(set(ends)) <= 1:
            self._ends.add(self._lines + 1, ends[:1])
            return
        position = 0
        for number, part in enumerate(text.split(self._quote)):
            size = part.count("\n")
            if number % 2 == 0:
                self._ends.add(self._lines + position + 1, ends[position : position + size])
            position += size

    def _outside_of_quotes(self, text: str) -> str | None:
        """Return whole lines with a letter for each quoted value; None if a quote does not belong to such a value."""
        if self._escape != self._quote:
            assert self._quoted
            plain = self._quoted.sub(r"\1q", text)
            return None if self._quote in plain else plain
        parts = text.split(self._quote)
        if len(parts) % 2 == 0:  # the last value is not closed in this piece
            return None
        outside = parts[::2]
        edges = (self._separator, "\n")
        first, last = outside[0], outside[-1]
        if (first and not first.endswith(edges)) or (last and not last.startswith(edges)):
            return None
        if all(not part or (part.startswith(edges) and part.endswith(edges)) for part in outside[1:-1]):
            return "q".join(outside)
        return None

    def _count(self, lines: list[str]) -> None:
        if self._columns == 1:
            for line in lines:
                self._read_line_without_quotes(line)
            return
        self._records += sum(1 for line in lines if line.strip(WHITESPACE))
        self._lines += len(lines)
        if self._is_white:
            self._count_empty_rows(lines)

    def _count_empty_rows(self, lines: list[str]) -> int:
        """Count the lines of separators alone, which look like empty lines to Spark; return their number."""
        number = sum(1 for line in lines if self._separator in line and not line.strip(WHITESPACE))
        self._records += number
        self._spans = self._spans or number > 0
        return number

    def _read_line_without_quotes(self, line: str) -> None:
        self._lines += 1
        if not line.strip(WHITESPACE):
            self._add_empty_line()
            return
        self._gap = self._gap or self._empty_line
        self._records += 1

    def _read_line(self, line: str) -> None:
        self._lines += 1
        was_inside = self._inside
        if not was_inside and not line.strip(WHITESPACE):
            if not self._count_empty_rows([line]):
                self._add_empty_line()
            return
        if not was_inside:
            self._gap = self._gap or self._empty_line
        self._inside = self._ends_inside(line, was_inside)
        if self._inside and not was_inside:
            self._opened = self._lines
            self._spans = True
        if not self._inside:
            self._records += 1

    def _add_empty_line(self) -> None:
        if self._records and not self._empty_line:
            self._empty_line = self._lines

    def _ends_inside(self, line: str, inside: bool) -> bool:
        """Return True if a quoted value is open at the end of a line."""
        position, size = 0, len(line)
        while position <= size:
            if inside or line.startswith(self._quote, position):
                position = self._closing(line, position if inside else position + len(self._quote))
                if position < 0:
                    return True
                inside = False
                self._check_end(line, position)
            position = line.find(self._separator, position)
            if position < 0:
                return False
            position += len(self._separator)
        return False

    def _check_end(self, line: str, position: int) -> None:
        """Check that only white space follows a closing quote: Spark keeps the quotes of any other value."""
        end = line.find(self._separator, position)
        if self._lenient or not line[position : end if end >= 0 else None].strip(WHITESPACE):
            return
        remedy = (
            f"set source.options.escape to '{self._quote}' if quotes are doubled"
            if line.startswith(self._quote, position)
            else "double a quote that belongs to the value, or set source.options.escape"
        )
        raise InvalidInput(
            f"{self._path}: line {self._lines:,} has text after a closing quote: {remedy}; "
            "source.options.unescapedQuoteHandling: STOP_AT_DELIMITER reads the value with its quotes"
        )

    def _closing(self, line: str, position: int) -> int:
        """Return the position after the quote that closes a value, or -1 if none does."""
        while position < len(line):
            pair = line[position : position + 2]
            if pair == self._escape + self._quote or (self._escape != self._quote and pair == self._escape * 2):
                position += 2
            elif pair[0] == self._quote:
                return position + 1
            else:
                position += 1
        return -1


def _quoted_field(separator: str, quote: str, escape: str) -> re.Pattern[str]:
    """Return the pattern of a whole quoted field, including the separator or line start before it."""
    q, e, s = re.escape(quote), re.escape(escape), re.escape(separator)
    inner = f"[^{q}]*(?:{q}{q}[^{q}]*)*" if escape == quote else f"[^{q}{e}]*(?:{e}.[^{q}{e}]*)*"
    return re.compile(f"(^|{s}){q}{inner}{q}(?={s}|$)", re.M | re.S)


def _trimmed_controls(separator: str, options: Mapping[str, str]) -> list[re.Pattern[str]]:
    """Return patterns of a control character at an end of a value that Spark trims."""
    control, edge = f"([{_CONTROLS.replace(separator, '')}])", re.escape(separator)
    patterns = {"leading": rf"(?:^|{edge})[ \t]*{control}", "trailing": rf"{control}[ \t]*(?:$|{edge})"}
    is_trimmed = {end: options.get(f"ignore{end}whitespace", "").lower() == "true" for end in patterns}
    return [re.compile(pattern, re.M) for end, pattern in patterns.items() if is_trimmed[end]]
