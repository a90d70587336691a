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

_OTHER_NOTATION = (
    "dateformat", "timestampformat", "timestampntzformat", "locale", "nanvalue", "positiveinf", "negativeinf",
    *BEYOND_HEADERS,
)  # fmt: skip
"""Options, in small letters, with which a type may accept other texts."""
_DIGITS, _EXPONENT = r"(?:\d+\.?\d*|\.\d+)", r"[eE][+-]?\d+"
_WHOLE, _DAY = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?\d.*", re.DOTALL)
_FRACTION = re.compile(rf"[+-]?(?:{_DIGITS}(?:{_EXPONENT})?|Inf|Infinity)|NaN")
_BOOLEAN = re.compile("true|t|yes|y|1|false|f|no|n|0", re.IGNORECASE)
_ACCEPTED = {
    **dict.fromkeys(("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"), _WHOLE),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"), _DAY),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL"), _FRACTION),
    "BOOLEAN": _BOOLEAN,
}
"""A pattern of all texts that a type accepts, and of some that it refuses."""
_DECIMAL = re.compile(r"(?:DECIMAL|DEC|NUMERIC)(?:\((\d+)(?:,(\d+))?\))?")


def _accepted(type: str) -> re.Pattern[str] | None:
    """Return a pattern of all texts that a type accepts, and of some that it refuses; None if there is no pattern."""
    name = type.upper().replace(" ", "")
    if decimal := _DECIMAL.fullmatch(name):
        scale = int(decimal[2] or 0)
        whole = int(decimal[1] or 10) - scale
        return re.compile(rf"[+-]?(?:0*\d{{0,{whole}}}(?:\.\d{{0,{scale}}}0*)?|{_DIGITS}{_EXPONENT})")
    return _ACCEPTED.get(name)


def hints_on_stated_types(source: Source, files: Sequence[InputFile]) -> list[str]:
    """Return a hint for each column of local CSV files with a value that its stated type does not accept.

    Only the first rows are read. Nothing is examined if options state another notation of values.
    """
    options = {key.lower(): value for key, value in source.options.items()}
    if not source.schema_ or source.reader_format() != "csv" or any(map(options.get, _OTHER_NOTATION)):
        return []
    types = {
        name.lower(): (type, accepted)
        for name, type in schema_types(source.schema_).items()
        if (accepted := _accepted(type))
    }
    hints: dict[str, str] = {}
    for file in files[:MOST_FILES]:
        if not is_remote(file.path):
            try:
                _add_hints(hints, file.path, options, types)
            except (InvalidInput, csv.Error):  # the error is reported when the file is read
                break
    return list(hints.values())


def _add_hints(
    hints: dict[str, str], path: str, options: Mapping[str, str], types: Mapping[str, tuple[str, re.Pattern[str]]]
) -> None:
    """Add a hint about the first refused value of each column without a hint."""
    reader, header = open_rows(path, options)
    nulls = {"", options.get("nullvalue", "")}
    for row in islice(reader or (), MOST_ROWS):
        for name, value in zip(header, row, strict=False):
            if name.lower() not in types or name in hints or value in nulls:
                continue
            type, accepted = types[name.lower()]
            if accepted.fullmatch(value):
                continue
            hints[name] = (
                f"{name} is {type} in `schema`, which does not accept {shortened(value)!r} in {Path(path).name}, line "
                f"{reader.line_num:,}: a run refuses the file. Correct it, or read {name} as STRING"
            )
