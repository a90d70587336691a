"""Read the footers of ORC files: row counts, and columns of times that Spark may read as other times."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lakehouse.source_files.foreign_times import NO_TIMES, ColumnsOfTimes, is_of_spark
from lakehouse.source_files.headers import check_distinct
from lakehouse.source_files.listing import ListedFile
from lakehouse.source_files.missing_fields import Structs, structs_of
from sluice.errors import InvalidInput

if TYPE_CHECKING:
    from pyarrow import DataType, Field, Schema, orc

_STATES_CALENDAR = "ORC Java "
"""Beginning of the software version that ORC's library for Java writes. Each file with a version also states the
calendar of its days, which this library did earlier. Other libraries state no calendar."""
_MOST = 64 * 1024 * 1024
"""Maximum number of bytes read from the end of a file."""


@dataclass(frozen=True)
class OrcFooter:
    """Content of the footer of an ORC file."""

    rows: int
    times: ColumnsOfTimes
    names: Sequence[str]
    """Names of its columns."""
    structs: Structs


def read_orc_footer(file: ListedFile) -> OrcFooter:
    """Read the footer of an ORC file.

    Raises:
        InvalidInput: the file has no footer or was changed, or Spark does not read one of its columns.
        ServiceUnavailable: its store does not answer.
    """
    content = open_orc(file)
    check_orc_columns(file.path, content.schema)
    return OrcFooter(content.nrows, _times(content), _shared(tuple(content.schema.names)), structs_of(content.schema))


def open_orc(file: ListedFile) -> "orc.ORCFile":
    """Open an ORC file without any check of its columns.

    Raises:
        InvalidInput: the file has no footer, or it was changed.
        ServiceUnavailable: its store does not answer.
    """
    from pyarrow import ArrowException, orc  # noqa: PLC0415  # slow to import

    try:
        return orc.ORCFile(_Tail(file))
    except (ArrowException, OSError) as error:
        raise InvalidInput(f"{file.path} is not a complete orc file: {str(error).splitlines()[0][:200]}") from error


def check_orc_columns(path: str, schema: "Schema") -> None:
    """Check that Spark reads the columns of an ORC file.

    Raises:
        InvalidInput: there is a type or a name that Spark does not read, or two columns whose names differ only in
            capital letters.
    """
    check_distinct(path, schema.names)
    if misread := next((name for each in schema for name in _names(each) if "`" in name), None):
        raise InvalidInput(
            f"{path}: the name of the column or field {misread!r} has a backtick, which Spark drops from names in ORC "
            "files together with other letters: rename it, or write Parquet"
        )
    for each in schema:
        if getattr(each.type, "tz", None):
            raise InvalidInput(
                f"{path}: the column {each.name} is a timestamp with local time zone, which Spark does not read: "
                "write it as a timestamp without a zone"
            )


@lru_cache(maxsize=32)
def _shared(names: tuple[str, ...]) -> Sequence[str]:
    """Return the names of columns: one tuple for all files with the same columns, which may be 100,000 files."""
    return names


def _names(field: "Field") -> Iterator[str]:
    """Yield the name of a column and of the fields in it."""
    yield field.name
    for number in range(field.type.num_fields):
        yield from _names(field.type.field(number))


def _times(content: "orc.ORCFile") -> ColumnsOfTimes:
    """Return the columns with times, unless Spark wrote the file: Spark keeps the clock time of its own times."""
    if is_of_spark(content.metadata):
        return NO_TIMES
    has_calendar = content.software_version.startswith(_STATES_CALENDAR)
    columns = {each.name: str(each.type) for each in content.schema if _has_times(each.type, days=not has_calendar)}
    return ColumnsOfTimes("orc" if has_calendar else "orc_without_calendar", tuple(columns.items()))


def _has_times(type: "DataType", *, days: bool) -> bool:
    """Return True if a type is or contains a time, or a day if `days` is set."""
    from pyarrow import types  # noqa: PLC0415

    inner = [type.field(number).type for number in range(type.num_fields)]
    is_time = types.is_timestamp(type) or (days and types.is_date(type))
    return is_time or any(_has_times(each, days=days) for each in inner)


class _Tail(io.RawIOBase):
    """View of a file that fetches only the bytes at its end, as many as a reader needs."""

    def __init__(self, file: ListedFile) -> None:
        super().__init__()
        self._file = file
        self._position = 0
        self._tail = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the bytes from the position on: all, or at most `size`."""
        missing = max(0, self._file.size - self._position)
        if missing > _MOST:
            raise OSError(f"its footer is cut off, or longer than {_MOST:,} bytes")
        if missing > len(self._tail):
            self._tail = self._file.read_tail(missing)
        begin = len(self._tail) - missing
        content = self._tail[begin : begin + size if size >= 0 else None]
        self._position += len(content)
        return content
