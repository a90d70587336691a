"""Hints about the first line of CSV files: it may not be a header, or may have more columns than it shows."""

from collections.abc import Sequence

from sluice.input.plain_notation import DATES, NUMBERS, notation_of

_SEPARATORS = {";": ";", "\t": "\\t", "|": "|"}
"""Separators of other dialects, each with its spelling in an option."""


def hints_on_header(names: Sequence[str]) -> list[str]:
    """Return hints about the column names of CSV files, for a person to read before the run starts."""
    hints = []
    if names and all(notation_of(name) in NUMBERS | DATES for name in names):
        hints.append(
            f"the first line of the files, {', '.join(names)[:100]}, is read as the header, although it has only "
            "numbers and dates. If the files have no header, set source.options.header to false, and state "
            "source.schema"
        )
    if padded := [name for name in names if name != name.strip()]:
        hints.append(
            f"the column name {padded[0]!r} in the header has spaces at its ends, and the table gets it with them. "
            "Remove them from the files, or set source.options.ignoreLeadingWhiteSpace and ignoreTrailingWhiteSpace"
        )
    if len(names) == 1 and (separator := next(filter(names[0].count, _SEPARATORS), "")):
        hints.append(
            f"the header is one column, {names[0][:100]!r}. If its columns are separated otherwise, set "
            f"source.options.sep to '{_SEPARATORS[separator]}'"
        )
    return hints
