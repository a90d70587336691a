"""Read source files right before Spark does: identify them again, and refuse files that it reads in part.

One pass over each file serves both. Spark counts the rows that it reads, and `Inspection.rows` is the expected number.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakehouse.source_files.csv_content import CsvReader
from lakehouse.source_files.foreign_times import NO_TIMES, ColumnsOfTimes, foreign_times
from lakehouse.source_files.headers import check_headers, check_not_in_folders
from lakehouse.source_files.identify import check_container, content_identity, describe
from lakehouse.source_files.in_threads import Counter, OnProgress, map_in_threads
from lakehouse.source_files.json_content import read_json
from lakehouse.source_files.json_losses import EmptyObjects, without_losses
from lakehouse.source_files.line_ends import NAMES
from lakehouse.source_files.listing import ListedFile, changed
from lakehouse.source_files.missing_fields import Structs, missing_fields
from lakehouse.source_files.orc_footer import read_orc_footer
from lakehouse.source_files.orc_positions import check_positions
from lakehouse.source_files.parquet_footer import (
    UNTYPED,
    ParquetFooter,
    column_groups,
    nanosecond_columns,
    read_footer,
)
from lakehouse.source_files.paths import base_path
from lakehouse.source_files.text import decoded, stated_encoding
from lakehouse.source_files.variants import check_variants
from sluice.contracts.run_request import InputFile
from sluice.contracts.spark_jobs import ColumnGroup, ForeignTimes, MissingFields, NanosecondColumn
from sluice.pipeline.encodings import WIDE_ENCODINGS
from sluice.pipeline.source import Format, Source


@dataclass(frozen=True)
class Inspection:
    """Facts about source files that decide how Spark reads them."""

    rows: int | None = None
    """Number of rows that Spark must read from all files; None if unknown."""
    read_whole: dict[str, list[str]] = field(default_factory=dict)
    """CSV files that Spark must not read line by line, because a value contains a line break, or a row has only
    separators. They are keyed by the end of their rows: LF, CRLF or CR; an empty key means that Spark detects it."""
    one_value: list[str] = field(default_factory=list)
    """JSON files that consist of one array or object instead of one value per line."""
    empty_objects: list[str] = field(default_factory=list)
    """JSON files that contain `{}`, maybe as a part of a text."""
    column_groups: list[ColumnGroup] = field(default_factory=list)
    """All Parquet files in groups, if columns have different types, or none, in some files; else empty."""
    nanoseconds: list[NanosecondColumn] = field(default_factory=list)
    """Columns of Parquet files with times in nanoseconds."""
    foreign_times: list[ForeignTimes] = field(default_factory=list)
    """Files with times that Spark may read as other times."""
    missing_fields: list[MissingFields] = field(default_factory=list)
    """Parquet or ORC files with rows, and without columns or fields that others have."""
    states: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """State reported by the file system or store, by path. Another state later shows that the file was touched."""


@dataclass(frozen=True)
class _Content:
    rows: int | None = None
    is_read_whole: bool = False
    line_end: str = ""
    is_one_value: bool = False
    has_empty_objects: bool = False
    footer: ParquetFooter | None = None
    times: ColumnsOfTimes = NO_TIMES
    orc_names: Sequence[str] = ()
    structs: Structs = ()
    first_line: str = ""
    state: tuple[object, ...] = ()


def inspect_files(
    files: Sequence[InputFile],
    source: Source,
    on_progress: OnProgress | None = None,
    *,
    is_transformed: bool = False,
) -> Inspection:
    """Read files completely, and verify that they are the identified ones and that Spark can read all of them.

    Args:
        is_transformed: True if a transform may convert columns of a type that Spark reads and no table can store.

    Raises:
        InvalidInput: one was replaced, changed or removed, Spark would drop or change a part of it, or no table can
            store a column of it.
        ServiceUnavailable: an object store does not answer.
    """
    base = base_path(source)

    def inspect(expected: InputFile, counter: Counter) -> _Content:
        return _inspect(expected, source, base, counter)

    contents = map_in_threads(inspect, files, on_progress, "inspected")
    inspected = [(file.path, content) for file, content in zip(files, contents, strict=True)]
    check_headers(((path, content.first_line) for path, content in inspected if content.first_line), source)
    check_positions({path: content.orc_names for path, content in inspected if content.orc_names}, source)
    rows = [content.rows for content in contents]
    footers = {path: content.footer for path, content in inspected if content.footer}
    if not is_transformed:
        check_variants({path: footer.variants for path, footer in footers.items()})
    return Inspection(
        rows=None if None in rows else sum(filter(None, rows)),
        read_whole=_by_line_end(inspected),
        column_groups=column_groups(footers),
        nanoseconds=nanosecond_columns(footers),
        foreign_times=foreign_times({path: content.times for path, content in inspected}),
        missing_fields=missing_fields({path: content.structs for path, content in inspected if content.rows}),
        one_value=[path for path, content in inspected if content.is_one_value],
        empty_objects=[path for path, content in inspected if content.has_empty_objects],
        states={path: content.state for path, content in inspected},
    )


def _by_line_end(inspected: Sequence[tuple[str, _Content]]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for path, content in inspected:
        if content.is_read_whole:
            files.setdefault(content.line_end, []).append(path)
    return files


def _inspect(expected: InputFile, source: Source, base: str | None, counter: Counter) -> _Content:
    file = describe(expected.path)
    if file.size != expected.size:
        raise changed(file.path, f"changed from {expected.size:,} to {file.size:,} bytes")
    state = file.state()
    format = source.reader_format()
    digest = hashlib.sha256()
    content = _Content()
    if format in ("csv", "json"):
        pieces = _counted(file, digest, counter)
        content = _read_text(file.path, pieces, format, {key.lower(): value for key, value in source.options.items()})
        for _ in pieces:
            pass
    else:
        if not file.store_identity:
            head = tail = b""
            for piece in _counted(file, digest, counter):
                head, tail = (head + piece[:4])[:4], (tail + piece[-4:])[-4:]
            check_container(file.path, format, file.size, head, tail)
        content = _read_columns(file, format)
        check_not_in_folders(file.path, _columns_with_values(content), base)
    if content_identity(file, base, digest.hexdigest()) != expected.identity:
        raise changed(file.path, "was replaced by other content")
    return replace(content, state=state)


def _read_columns(file: ListedFile, format: Format) -> _Content:
    """Return the row count and the columns from the footer of a Parquet or ORC file."""
    if format == "parquet":
        footer = read_footer(file)
        return _Content(rows=footer.rows, footer=footer, times=footer.int96, structs=footer.structs)
    orc = read_orc_footer(file)
    return _Content(rows=orc.rows, times=orc.times, orc_names=orc.names, structs=orc.structs)


def _columns_with_values(content: _Content) -> Iterator[str]:
    """Yield the columns of a Parquet or ORC file, except those without a type: they have no value to lose."""
    ((_, names), *_) = content.structs
    types = content.footer.types if content.footer else {}
    return (name for name in names if types.get(name) != UNTYPED)


def _counted(file: ListedFile, digest: "hashlib._Hash", counter: Counter) -> Iterator[bytes]:
    for piece in file.read():
        counter.add(len(piece))
        digest.update(piece)
        yield piece


def _read_text(path: str, pieces: Iterator[bytes], format: str, options: Mapping[str, str]) -> _Content:
    encoding = stated_encoding(options)
    texts = decoded(path, pieces, encoding, is_json=format == "json")
    end = options.get("linesep")
    if format == "json":
        search = EmptyObjects()
        json = read_json(path, search.watch(without_losses(path, texts)), encoding, end)
        return _Content(rows=json.rows, is_one_value=json.is_one_value, has_empty_objects=search.has_any)
    if end is not None and end not in NAMES:
        for _ in texts:  # only Spark knows its lines then
            pass
        return _Content()
    is_read_whole = options.get("multiline", "").lower() == "true" or encoding.startswith(WIDE_ENCODINGS)
    csv = CsvReader(path, options, is_read_whole=is_read_whole).read(texts)
    return _Content(
        rows=csv.rows,
        is_read_whole=is_read_whole or csv.spans_lines,
        line_end=csv.line_end,
        first_line=csv.first_line,
    )
