"""Write rows into one source file in the format that a pipeline reads: CSV, JSON lines, Parquet or ORC.

The file is written under a hidden name, which readers ignore, and gets its name when it is complete. No existing file
is replaced.
"""

import filecmp
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.source_files.paths import is_remote
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.source import Format, Source
from sluice.sql.values import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

_UNKNOWN_OPTIONS = {
    *("encoding", "charset", "linesep", "locale", "timezone", "dateformat", "timestampformat", "timestampntzformat"),
    *("chartoescapequoteescaping", "nanvalue", "positiveinf", "negativeinf", "emptyvalue"),
    *("ignoreleadingwhitespace", "ignoretrailingwhitespace"),
}
"""Reader options, in small letters, for which no files can be written."""
_SUFFIXES: dict[Format, str] = {"csv": ".csv", "json": ".json", "parquet": ".parquet", "orc": ".orc"}
_ORC_ROWS = 10_000


def suffix_of(format: Format) -> str:
    """Return the suffix of files of a format."""
    return _SUFFIXES[format]


def check_writable(source: Source) -> None:
    """Verify that files can be written as the reader of a source expects them.

    Raises:
        InvalidPipeline: the source sets an option that prevents it.
    """
    text = source.reader_format() in ("csv", "json")
    wrong = [key for key in source.options if text and key.lower() in _UNKNOWN_OPTIONS]
    if wrong:
        raise InvalidPipeline(
            f"`generate` cannot write files for the reader option {wrong[0]}: remove it from source.options"
        )


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], source: Source) -> None:
    """Write rows into a file that appears complete. An identical existing file stays.

    Raises:
        InvalidInput: the file cannot be written, or a different file has its name.
    """
    writers = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet, "orc": _write_orc}
    with _hidden(path) as hidden:
        writers[source.reader_format()](hidden, rows, types, source)


def local_folder(path: str) -> Path:
    """Return the folder to write into, created if needed.

    Raises:
        InvalidInput: it is in a store, or cannot be created.
    """
    if is_remote(path):
        raise InvalidInput(f"`generate` writes only into local folders: give one, and copy the file to {path}")
    folder = Path(path.removeprefix("file://").removeprefix("file:")).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be created: {error.strerror}") from error
    return folder


@contextmanager
def _hidden(path: Path) -> Iterator[Path]:
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield hidden
        with hidden.open("rb") as written:
            os.fsync(written.fileno())
        _name(hidden, path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        hidden.unlink(missing_ok=True)


def _name(hidden: Path, path: Path) -> None:
    """Give a file its name, unless a different file has it.

    Raises:
        InvalidInput: a different file has it.
    """
    try:
        os.link(hidden, path)
    except FileExistsError:
        if not filecmp.cmp(hidden, path, shallow=False):
            raise InvalidInput(f"{path} exists already with other rows: give another --seed or --to") from None
    except OSError:  # a file system without links
        if path.exists():
            raise InvalidInput(f"{path} exists already: give another --seed or --to") from None
        hidden.rename(path)


def arrow_table(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> "pa.Table":
    """Return rows as an Arrow table whose columns have these Iceberg types."""
    import pyarrow as pa  # noqa: PLC0415  # slow to import

    schema = pa.schema([(name, _arrow_type(kind)) for name, kind in types.items()])
    return pa.table({name: [row[name] for row in rows] for name in types}, schema=schema)


def _arrow_type(iceberg_type: str) -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415

    kind = kind_of(iceberg_type)
    if kind == "decimal":
        precision, scale = iceberg_type.split("(")[1].rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    plain = {
        "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
        "date": pa.date32(), "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"),
    }  # fmt: skip
    return plain.get(kind, pa.string())


def _write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], source: Source) -> None:
    from pyarrow import parquet  # noqa: PLC0415

    parquet.write_table(arrow_table(rows, types), path)


def _write_orc(path: Path, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], source: Source) -> None:
    from pyarrow import orc  # noqa: PLC0415

    orc.write_table(arrow_table(rows, types), str(path), batch_size=_ORC_ROWS)


def _write_json(path: Path, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], source: Source) -> None:
    is_array = any(key.lower() == "multiline" and value.lower() == "true" for key, value in source.options.items())
    lines = [json.dumps({name: _json_value(row[name]) for name in types}, ensure_ascii=False) for row in rows]
    text = "[" + ",\n".join(lines) + "]\n" if is_array else "".join(f"{line}\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def _json_value(value: Any) -> Any:
    if isinstance(value, date | datetime):
        return _time(value)
    return float(value) if isinstance(value, Decimal) else value


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], source: Source) -> None:
    options = {key.lower(): value for key, value in source.options.items()}
    mark = options.get("quote", '"')
    style = _CsvStyle(
        separator=options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t"),
        quote=mark,
        escape=options.get("escape", '"'),
        null=options.get("nullvalue", ""),
    )
    lines = [] if options.get("header", "true").lower() == "false" else [[style.text(name) for name in types]]
    lines += [[style.cell(row[name]) for name in types] for row in rows]
    path.write_text("".join(style.separator.join(cells) + "\n" for cells in lines), encoding="utf-8")


class _CsvStyle:
    """Format of the values of a CSV file."""

    def __init__(self, separator: str, quote: str, escape: str, null: str) -> None:
        self.separator, self.quote, self.escape, self.null = separator, quote, escape, null

    def cell(self, value: Any) -> str:
        if value is None:
            return self.null
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, date | datetime):
            return _time(value)
        if isinstance(value, float) and value != value:  # noqa: PLR0124  # NaN alone differs from itself
            return "NaN"
        return self.text(value) if isinstance(value, str) else str(value)

    def text(self, value: str) -> str:
        special = (self.separator, self.quote, "\n", "\r", self.escape)
        if (
            value
            and value != self.null
            and value == value.strip()
            and not any(each and each in value for each in special)
        ):
            return value
        inner = value.replace(self.escape, self.escape * 2) if self.escape != self.quote else value
        return self.quote + inner.replace(self.quote, self.escape + self.quote) + self.quote


def _time(value: date) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    text = value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds")
    return f"{text.replace(' ', 'T')}Z" if value.tzinfo else text
