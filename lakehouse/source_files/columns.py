"""Read the column names of source files without reading their rows."""

from collections.abc import Iterator, Sequence

from lakehouse.source_files.headers import parse_header
from lakehouse.source_files.identify import describe
from lakehouse.source_files.line_ends import WHITESPACE
from lakehouse.source_files.paths import base_path, folder_columns, is_remote
from lakehouse.source_files.text import decoded, stated_encoding
from sluice.contracts.run_request import InputFile
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source
from sluice.sql.schema_ddl import schema_columns

_FILES = 64
"""Maximum number of files to read. Parquet files may differ in columns, so the names in more files are unknown."""


def read_column_names(source: Source, files: Sequence[InputFile]) -> list[str] | None:
    """Return the columns that occur in any source file: from `schema`, from headers, or from Parquet's footers.

    None if they are not certain before Spark reads the files: for JSON, ORC, CSV without a header or with options that
    change it, files of a store, many files, and folders named `column=value` outside of the source's folder.
    """
    base = base_path(source)
    options = {key.lower(): value for key, value in source.options.items()}
    has_folders = any("=" in part for file in files for part in file.path.split("/")[:-1])
    if "basepath" in options or (has_folders and base is None):
        return None
    folders = [name for file in files for name in folder_columns(file.path, base)]
    if source.schema_:
        return list(dict.fromkeys([*schema_columns(source.schema_), *folders]))
    if len(files) > _FILES:
        return None
    names: dict[str, None] = {}
    for file in files:
        own = _columns_of(file.path, source, options)
        if own is None:
            return None
        names.update(dict.fromkeys(own))
    return list({**names, **dict.fromkeys(folders)}) if names else None


def _columns_of(path: str, source: Source, options: dict[str, str]) -> list[str] | None:
    if is_remote(path):
        return None
    format = source.reader_format()
    if format == "csv":
        return _header(path, options)
    return _columns_of_parquet(path) if format == "parquet" else None


def _columns_of_parquet(path: str) -> list[str] | None:
    import pyarrow as pa  # noqa: PLC0415  # half a second, which other files do not need
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):  # the error is reported when the file is read
        return None


def _header(path: str, options: dict[str, str]) -> list[str] | None:
    """Return the fields of the first non-empty line of a CSV file."""
    try:
        line = first_line(decoded(path, describe(path).read(), stated_encoding(options)))
    except InvalidInput:  # the error is reported when the file is read
        return None
    return None if line is None else parse_header(line, options)


def first_line(pieces: Iterator[str]) -> str | None:
    """Return the first non-empty line; None if the first piece of the file does not contain all of it."""
    piece = next(pieces, "").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = piece.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip(WHITESPACE):
            is_whole = number < len(lines) or not any(pieces)
            return line if is_whole else None
    return None
