"""Compare the headers of CSV files before Spark reads them, since Spark would not name the deviating file."""

import csv
from collections.abc import Iterable, Mapping, Sequence

from lakehouse.source_files.csv_content import CsvFormat
from lakehouse.source_files.paths import base_path, folder_columns
from sluice.errors import InvalidInput
from sluice.lines import shortened_line
from sluice.pipeline.source import Source
from sluice.sql.schema_ddl import schema_columns

BEYOND_HEADERS = (
    "linesep", "escape", "chartoescapequoteescaping", "unescapedquotehandling", "ignoreleadingwhitespace",
    "ignoretrailingwhitespace", "basepath",
)  # fmt: skip
"""Options, in small letters, that may make Spark read other names than those of the first line."""
MAX_COLUMNS = 20_480
"""Number of columns that Spark reads unless the option `maxColumns` states another."""
_SHOWN = 200
"""Maximum number of characters of names in a message about another header."""


def parse_header(line: str, options: Mapping[str, str]) -> list[str] | None:
    """Return the names in the first line of a CSV file; None if Spark may read other names.

    Args:
        options: the options of Spark's reader, with names in small letters.
    """
    csv_format = CsvFormat.of(options)
    separator, quote = csv_format.separator, csv_format.quote
    if not csv_format.has_header or any(options.get(name) for name in BEYOND_HEADERS):
        return None
    if len(separator) != 1 or len(quote) > 1 or (quote and line.count(quote) % 2):  # a name with a line break
        return None
    try:
        return next(csv.reader([line], delimiter=separator, quotechar=quote), None) if quote else line.split(separator)
    except csv.Error:
        return None


def check_headers(headers: Iterable[tuple[str, str]], source: Source) -> None:
    """Verify that CSV files have the same header, and that of the stated schema if there is one.

    Args:
        headers: the first line of each file that has one, by the file's path.

    Raises:
        InvalidInput: one file has another header.
    """
    options = {key.lower(): value for key, value in source.options.items()}
    base, first = base_path(source), ("", list[str]())
    stated = schema_columns(source.schema_) if source.schema_ else None
    for path, line in headers:
        names = parse_header(line, options)
        if names is None:
            continue
        _check_header(path, names, options)
        check_distinct(path, names)
        if stated is not None:
            folders = {name.lower() for name in folder_columns(path, base)}
            _compare(path, names, [name for name in stated if name.lower() not in folders], "source.schema")
        elif first[0]:
            _compare(path, names, first[1], first[0])
        else:
            first = (path, names)


def _check_header(path: str, names: Sequence[str], options: Mapping[str, str]) -> None:
    """Verify that each column of a header has a name, and that Spark reads so many columns.

    Raises:
        InvalidInput: a column has no name, or there are too many.
    """
    most = options.get("maxcolumns", "")
    limit = int(most) if most.isdecimal() else MAX_COLUMNS
    if len(names) > limit:
        raise InvalidInput(
            f"{path}: the header has {len(names):,} columns, but Spark reads {limit:,}: set source.options.maxColumns "
            f"to {len(names)}"
        )
    unnamed = next((number for number, name in enumerate(names, 1) if not name.strip()), 0)
    if unnamed == len(names) > 1 and names[-2].strip():
        raise InvalidInput(
            f"{path}: the header ends with a separator, so that column {unnamed:,} (after {names[-2]!r}) has no name: "
            "name it, or remove the separator at the end of the lines"
        )
    if unnamed:
        raise InvalidInput(f"{path}: column {unnamed:,} of the header has no name: name it in the file")


def check_distinct(path: str, names: Sequence[str]) -> None:
    """Verify that the columns of a file have different names, regardless of capital letters.

    Raises:
        InvalidInput: two columns have one name.
    """
    first: dict[str, str] = {}
    for name in names:
        key = name.strip().lower()
        if key in first:
            other = first[key]
            problem = (
                f"the column {name!r} occurs twice"
                if other == name
                else f"the columns {other!r} and {name!r} differ in capital letters alone"
            )
            raise InvalidInput(f"{path}: {problem}, but a table needs distinct names: rename one")
        first[key] = name


def _compare(path: str, names: Sequence[str], wanted: Sequence[str], of: str) -> None:
    """Verify that a header has the wanted names in their order.

    Args:
        of: the file or key that has the wanted names.

    Raises:
        InvalidInput: the header has other names, or another order.
    """
    given, expected = ([name.strip().lower() for name in each] for each in (names, wanted))
    if given == expected:
        return
    lacks = [name for name in wanted if name.strip().lower() not in given]
    adds = [name for name in names if name.strip().lower() not in expected]
    if lacks or adds or len(names) != len(wanted):
        differences = [
            f"it {verb} {shortened_line(', '.join(map(repr, each)), _SHOWN)}"
            for verb, each in (("lacks", lacks), ("adds", adds))
            if each
        ]
        described = " and ".join(differences) or f"it has {len(names):,} columns instead of {len(wanted):,}"
        is_row = len(lacks) == len(wanted) == len(names)
        remedy = ". If its first line is a row, set source.options.header to false" if is_row else ""
        raise InvalidInput(f"{path} has another header than {of}: {described}{remedy}")
    number = next(n for n, pair in enumerate(zip(given, expected, strict=True)) if pair[0] != pair[1])
    raise InvalidInput(
        f"{path} has its columns in another order than {of}: column {number + 1} is {names[number]!r} instead of "
        f"{wanted[number]!r}. Give all files of a run the same order"
    )


def check_not_in_folders(path: str, names: Iterable[str], base: str | None) -> None:
    """Check that no column of a file is also in its folders, whose value Spark would read instead.

    Args:
        base: the base path of the source; None if folders become no columns.

    Raises:
        InvalidInput: a column is in both.
    """
    folders = {name.lower() for name in folder_columns(path, base)}
    if twice := next((name for name in names if name.lower() in folders), None):
        raise InvalidInput(
            f"{path}: the column {twice} is in the folders `{twice}=` and in the file, and one value would be lost: "
            "leave it out of the file, or list the files by a pattern: then folders become no columns"
        )
