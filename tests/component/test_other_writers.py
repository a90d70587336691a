"""Files of pandas, pyarrow, DuckDB and Polars: main has the values that the library reads, or the file is refused."""

import datetime
import decimal
import json
import random
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.ingester import Ingester
from tests.harness.plain_values import plain_value
from tests.harness.seeds import new_seed

_SEED = new_seed()
_ROWS = 6
_UTC = datetime.timezone.utc
_MICROSECONDS = 10**6


def _times(draw: random.Random, step: int = 1) -> list[datetime.datetime]:
    start = datetime.datetime(1969, 1, 1)
    return [start + datetime.timedelta(microseconds=draw.randrange(10**17) // step * step) for _ in range(_ROWS)]


def _of_arrow(draw: random.Random) -> dict[str, pa.Array]:
    """Return a column of every type that Arrow has, each with a NULL."""

    def of(values: Sequence[Any], type: pa.DataType) -> pa.Array:
        return pa.array([*values[:-1], None], type)

    whole = [draw.randint(-128, 127) for _ in range(_ROWS)]
    natural = [draw.randint(0, 255) for _ in range(_ROWS)]
    texts = [draw.choice(["", "a", "été", "x\ny", '"', "\u2028"]) for _ in range(_ROWS)]
    numbers = [draw.choice([0.0, -0.0, 0.1, 1e300, -1.5, float(draw.random())]) for _ in range(_ROWS)]
    money = [decimal.Decimal(draw.randint(-(10**9), 10**9)).scaleb(-2) for _ in range(_ROWS)]
    days = [each.date() for each in _times(draw)]
    local, seconds = _times(draw), _times(draw, _MICROSECONDS)
    points = [each.replace(tzinfo=_UTC) for each in local]
    nanoseconds = [1_700_000_000_000_000_000 + 1000 * number for number in whole]
    columns = {
        f"int{bits}": of(whole, pa.int8() if bits == 8 else getattr(pa, f"int{bits}")()) for bits in (8, 16, 32, 64)
    }
    columns |= {f"uint{bits}": of(natural, getattr(pa, f"uint{bits}")()) for bits in (8, 16, 32, 64)}
    return columns | {
        "uint64_large": of([2**64 - 1] * _ROWS, pa.uint64()),
        "bool": of([each > 0 for each in whole], pa.bool_()),
        "float32": of([float(each) / 4 for each in whole], pa.float32()),
        "float64": of(numbers, pa.float64()),
        "decimal128": of(money, pa.decimal128(20, 2)),
        "decimal256": of(money, pa.decimal256(38, 2)),
        "string": of(texts, pa.string()),
        "large_string": of(texts, pa.large_string()),
        "string_view": of(texts, pa.string_view()),
        "binary": of([each.encode() for each in texts], pa.binary()),
        "large_binary": of([each.encode() for each in texts], pa.large_binary()),
        "fixed_binary": of([bytes([each % 256] * 4) for each in whole], pa.binary(4)),
        "date32": of(days, pa.date32()),
        "date64": of(days, pa.date64()),
        "seconds": of(seconds, pa.timestamp("s")),
        "milliseconds": of(seconds, pa.timestamp("ms")),
        "microseconds": of(local, pa.timestamp("us")),
        "points": of(points, pa.timestamp("us", tz="UTC")),
        "points_elsewhere": of(points, pa.timestamp("us", tz="Europe/Berlin")),
        "nanoseconds": of(nanoseconds, pa.timestamp("ns")),
        "nanosecond_points": of(nanoseconds, pa.timestamp("ns", tz="UTC")),
        "dictionary": of(texts, pa.string()).dictionary_encode(),
        "list": of([[each, None] for each in whole], pa.list_(pa.int32())),
        "large_list": of([[each] for each in texts], pa.large_list(pa.string())),
        "fixed_list": of([[each, each] for each in whole], pa.list_(pa.int32(), 2)),
        "struct": of(
            [{"a": each, "b": [each]} for each in whole], pa.struct({"a": pa.int32(), "b": pa.list_(pa.int32())})
        ),
        "map": of([[(str(each), each)] for each in whole], pa.map_(pa.string(), pa.int32())),
    }


_REFUSED: dict[str, pa.Array] = {
    "float16": pa.array([1.5] * _ROWS, pa.float16()),
    "time32": pa.array([datetime.time(10, 30)] * _ROWS, pa.time32("ms")),
    "time64": pa.array([datetime.time(10, 30)] * _ROWS, pa.time64("us")),
    "decimal256_wide": pa.array([decimal.Decimal(1)] * _ROWS, pa.decimal256(60, 2)),
    "nanoseconds_lost": pa.array([1] * _ROWS, pa.timestamp("ns")),
    "uuid": pa.array([uuid.uuid4().bytes] * _ROWS, pa.uuid()),
}
"""Types whose values neither Spark nor Iceberg can represent."""


def _rows(job: Ingester, path: Path) -> list[dict[str, Any]]:
    job({"path": str(path)})
    return job.rows()


def _loaded(job: Ingester, path: Path) -> list[dict[str, Any]]:
    return [{name: plain_value(value) for name, value in row.items()} for row in _rows(job, path)]


def _as_read(table: pa.Table) -> list[dict[str, Any]]:
    return [{name: plain_value(value) for name, value in row.items()} for row in table.to_pylist()]


def _with_ids(columns: dict[str, pa.Array]) -> pa.Table:
    return pa.table({"id": pa.array(range(_ROWS), pa.int32()), **columns})


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_every_type_of_arrow(job: Ingester, version: str) -> None:
    print(f"seed {_SEED}")
    columns = _of_arrow(random.Random(f"{version} {_SEED}"))
    path = job.folder / "in.parquet"
    pq.write_table(_with_ids(columns), path, version=version)
    loaded, read = _loaded(job, path), _as_read(pq.read_table(path))
    wrong = [
        (name, row[name], other.get(name))
        for row, other in zip(read, loaded, strict=True)
        for name in row
        if row[name] != other.get(name)
    ]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("name", _REFUSED)
def test_a_type_that_no_table_has_is_refused_by_file_and_column(job: Ingester, name: str) -> None:
    path = job.folder / "in.parquet"
    pq.write_table(_with_ids({name: _REFUSED[name]}), path)
    refused = job.refused({"path": str(path)})
    assert name in refused and "in.parquet" in refused, refused


def _by_pandas(table: pa.Table, path: Path) -> None:
    frame = table.to_pandas()
    match path.suffix:
        case ".parquet":
            frame.to_parquet(path)
        case ".csv":
            frame.to_csv(path, index=False)
        case _:
            frame.to_json(path, orient="records", lines=True, double_precision=15)


def _by_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("written", table)
        format = {".parquet": "PARQUET", ".csv": "CSV, HEADER", ".jsonl": "JSON"}[path.suffix]
        connection.execute(f"COPY written TO '{path}' (FORMAT {format})")


def _by_polars(table: pa.Table, path: Path) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    match path.suffix:
        case ".parquet":
            frame.write_parquet(path)
        case ".csv":
            frame.write_csv(path)
        case _:
            frame.write_ndjson(path)


_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "pandas": _by_pandas,
    "duckdb": _by_duckdb,
    "polars": _by_polars,
}
_COMMON = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool", "float32", "float64", "decimal128"),
    *("string", "binary", "date32", "microseconds", "points", "nanoseconds", "list", "struct"),
)
_IN_TEXT = ("int8", "int32", "int64", "bool", "float64", "date32", "microseconds")


@pytest.mark.parametrize("writer", _WRITERS)
def test_parquet_of_another_library(job: Ingester, writer: str) -> None:
    """Main has the values that pyarrow reads, in every type that the libraries have in common."""
    print(f"seed {_SEED}")
    columns = _of_arrow(random.Random(f"{writer} {_SEED}"))
    path = job.folder / "in.parquet"
    _WRITERS[writer](_with_ids({name: columns[name] for name in _COMMON}), path)
    assert _loaded(job, path) == _as_read(pq.read_table(path))


@pytest.mark.parametrize("writer", _WRITERS)
def test_csv_of_another_library(job: Ingester, writer: str) -> None:
    """Main has the library's values, although text states no types."""
    print(f"seed {_SEED}")
    columns = _of_arrow(random.Random(f"{writer} {_SEED}"))
    table = _with_ids({name: columns[name] for name in _IN_TEXT})
    path = job.folder / "in.csv"
    _WRITERS[writer](table, path)
    loaded = _loaded(job, path)
    for row, other in zip(_as_read(table), loaded, strict=True):
        for name, value in row.items():
            assert _means(value, other.get(name)), (name, value, other.get(name))


@pytest.mark.parametrize("writer", _WRITERS)
def test_json_of_another_library(job: Ingester, writer: str) -> None:
    """Main has the values that Python's parser reads from each line."""
    print(f"seed {_SEED}")
    columns = _of_arrow(random.Random(f"{writer} {_SEED}"))
    names = ("int8", "int64", "uint32", "bool", "float64", "string", "list")
    path = job.folder / "in.jsonl"
    _WRITERS[writer](_with_ids({name: columns[name] for name in names}), path)
    lines = [json.loads(line) for line in path.read_text().split("\n") if line]
    loaded = [{name: row.get(name) for name in line} for line, row in zip(lines, _rows(job, path), strict=True)]
    assert loaded == lines


def _means(written: Any, loaded: Any) -> bool:
    """Return True if a loaded value equals the written one: `1.0` may be text if others are `1e+300`."""
    if written is None or loaded is None:
        return written is loaded
    if isinstance(loaded, str) and isinstance(written, str):  # a number written with an exponent
        return float(loaded) == float(written)
    if isinstance(loaded, str):
        return str(written).lower() == loaded.lower() or float(loaded) == float(written)
    return bool(written == loaded or (isinstance(written, str) and float(written) == float(loaded)))
