"""Find values of CSV files that a stated type certainly does not accept (docs/values.md).

The built-in job examines all values of all files. Here, a mistake in a schema is noticed before Spark starts.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from lakehouse.source_files.headers import BEYOND_HEADERS
from lakehouse.source_files.paths import is_remote
from lakehouse.source_files.type_preview import MOST_FILES, MOST_ROWS, open_rows, shortened
from sluice.contracts.run_request import InputFile
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source
from sluice.sql.schema_ddl import schema_types

_OTHER_NOTATION = ("dateformat", "timestampformat", "timestampntzformat", "locale", *BEYOND_HEADERS)
"""Options, in small letters, with which a type may accept other texts."""
_WHOLE, _DAY = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?\d.*", re.DOTALL)
_ACCEPTED = {
    **dict.fromkeys(("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"), _WHOLE),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"), _DAY),
}
"""A pattern of all texts that a type accepts, and of some that it refuses. Types without one are not examined."""


def hints_on_stated_types(source: Source, files: Sequence[InputFile]) -> list[str]:
    """Return a hint for each column of local CSV files with a value that its stated type does not accept.

    Only the first rows are read. Nothing is examined if options state another notation of values.
    """
    options = {key.lower(): value for key, value in source.options.items()}
    if not source.schema_ or source.reader_format() != "csv" or any(map(options.get, _OTHER_NOTATION)):
        return []
    types = {name.lower(): type for name, type in schema_types(source.schema_).items() if type.upper() in _ACCEPTED}
    hints: dict[str, str] = {}
    for file in files[:MOST_FILES]:
        if not is_remote(file.path):
            try:
                _add_hints(hints, file.path, options, types)
            except (InvalidInput, csv.Error):  # the error is reported when the file is read
                break
    return list(hints.values())


def _add_hints(hints: dict[str, str], path: str, options: Mapping[str, str], types: Mapping[str, str]) -> None:
    """Add a hint about the first refused value of each column without a hint."""
    reader, header = open_rows(path, options)
    nulls = {"", options.get("nullvalue", "")}
    for row in islice(reader or (), MOST_ROWS):
        for name, value in zip(header, row, strict=False):
            type = types.get(name.lower(), "")
            if not type or name in hints or value in nulls or _ACCEPTED[type.upper()].fullmatch(value):
                continue
            hints[name] = (
                f"{name} is {type} in `schema`, which does not accept {shortened(value)!r} in {Path(path).name}, line "
                f"{reader.line_num:,}: a run refuses the file. Correct it, or read {name} as STRING"
            )
