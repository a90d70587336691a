"""Files of PyArrow with days, times and texts at the edges: main has each value as it is, or the column is refused."""

import datetime
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.harness.ingester import Ingester
from tests.harness.seeds import new_seed

_SEED = new_seed()
_ROUNDS = 3
_ROWS = 3
_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY, _GREGORIAN_DAY = -719_162, 2_932_896, -141_427
"""The first day of the year 1, the last of the year 9999, and 1582-10-15, counted from 1970-01-01."""
_DAY = 86_400 * 10**6


class _Kind(NamedTuple):
    type: pa.DataType
    plain: Any
    edges: Sequence[Any]
    draw: Callable[[random.Random], Any]


_KINDS = {
    "day": _Kind(
        pa.date32(),
        20_000,
        (_FIRST_DAY, _FIRST_DAY - 1, _LAST_DAY, _LAST_DAY + 1, _GREGORIAN_DAY, _GREGORIAN_DAY - 1, 2**31 - 1, -(2**31)),
        lambda draw: draw.randint(-800_000, 3_000_000),
    ),
    "time": _Kind(
        pa.timestamp("us"),
        20_000 * _DAY,
        (_FIRST_DAY * _DAY, _FIRST_DAY * _DAY - 1, (_LAST_DAY + 1) * _DAY - 1, (_LAST_DAY + 1) * _DAY, -1, -(10**6)),
        lambda draw: draw.randint(-800_000, 3_000_000) * _DAY + draw.choice([0, 1, 500_000, 10**6]),
    ),
    "nanoseconds": _Kind(
        pa.timestamp("ns"),
        10**18,
        (1, 999, -1, -1000, -(10**9), 1_769_855_400_123_456_789),
        lambda draw: draw.randint(-(10**17), 10**18) * draw.choice([1, 1, -1]) // 1000 * 1000 + draw.choice([0, 0, 7]),
    ),
    "text": _Kind(
        pa.string(),
        b"plain",
        (b"", b"caf\xe9", "café".encode(), b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\0"),
        lambda draw: draw.randbytes(draw.randint(1, 3)),
    ),
}


def _is_storable(name: str, value: Any, form: str) -> bool:
    """Return True if a table can store the value, and the form of the file states it so that Spark can read it."""
    if name == "text":
        try:
            value.decode()
        except UnicodeDecodeError:
            return False
        return True
    if name == "nanoseconds" and value % 1000:
        return False
    microseconds = {"day": value * _DAY, "time": value, "nanoseconds": value // 1000}[name]
    if not _FIRST_DAY * _DAY <= microseconds < (_LAST_DAY + 1) * _DAY:
        return False
    is_old = microseconds < _GREGORIAN_DAY * _DAY
    return form != "orc" or not (is_old or (microseconds < 0 and microseconds % 10**6))


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    if name == "text":
        return pa.array(values, pa.binary()).view(pa.string())
    whole = pa.array(values, pa.int32() if name == "day" else pa.int64())
    return whole.view(_KINDS[name].type)


def _write(table: pa.Table, path: Path, form: str) -> None:
    if form == "orc":
        orc.write_table(table, str(path))
    else:
        pq.write_table(table, path, use_deprecated_int96_timestamps=form == "int96")


def _as_drawn(name: str, loaded: Any) -> Any:
    """Return a loaded value as the number or the bytes that were drawn."""
    if name == "text":
        return loaded.encode()
    if name == "day":
        return (loaded - _EPOCH.date()).days
    microseconds = (loaded.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
    return microseconds * 1000 if name == "nanoseconds" else microseconds


@pytest.mark.parametrize("name", _KINDS)
@pytest.mark.parametrize("form", ["parquet", "int96", "orc"])
def test_a_value_at_the_edge_is_loaded_as_it_is_or_refused(job: Ingester, form: str, name: str) -> None:
    print(f"seed {_SEED}")
    draw = random.Random(f"{form} {name} {_SEED}")
    for number in range(_ROUNDS):
        kind = _KINDS[name]
        drawn = [draw.choice([kind.plain, draw.choice(kind.edges), kind.draw(draw)]) for _ in range(_ROWS)]
        ids = [number * _ROWS + row for row in range(_ROWS)]
        columns = {each: _column(each, [_KINDS[each].plain] * _ROWS) for each in _KINDS} | {name: _column(name, drawn)}
        path = job.folder / f"{number}.{'orc' if form == 'orc' else 'parquet'}"
        _write(pa.table({"id": ids, **columns}), path, form)
        refusal = job.refusal({"path": str(path)})
        if all(_is_storable(name, each, form) for each in drawn):
            assert refusal is None, (drawn, refusal)
            assert [_as_drawn(name, row[name]) for row in job.rows() if row["id"] in ids] == drawn
        else:
            assert refusal is not None, drawn
            assert refusal.startswith(f"{name}: ") and str(path) in refusal, refusal


@pytest.mark.parametrize("format", ["parquet", "orc"])
@pytest.mark.parametrize(
    ("type", "value"),
    [
        (pa.map_(pa.string(), pa.int64()), [("a", 1), ("a", 2)]),
        (pa.map_(pa.float64(), pa.string()), [(0.0, "p"), (-0.0, "q")]),
        (pa.list_(pa.struct({"m": pa.map_(pa.int32(), pa.int32())})), [{"m": [(1, 1), (1, None)]}]),
        (pa.map_(pa.string(), pa.map_(pa.string(), pa.string())), [("k", [("a", "x"), ("b", "y"), ("a", "x")])]),
    ],
)
def test_a_map_that_has_a_key_twice(job: Ingester, format: str, type: pa.DataType, value: Any) -> None:
    path = job.folder / f"in.{format}"
    table = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "m": pa.array([None, value, []], type)})
    (pq if format == "parquet" else orc).write_table(table, path)
    source = {"path": str(path)}
    refused = job.refused(source)
    assert refused.startswith(f"m: 1 row ({path}) with a map that has a key twice, which most readers"), refused
    if isinstance(type, pa.MapType) and not isinstance(type.item_type, pa.MapType):
        job(source, transform="SELECT id, map_entries(m) AS m FROM source")
        assert [len(row["m"] or ()) for row in job.rows()] == [0, 2, 0]


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_maps_that_have_each_key_once(job: Ingester, format: str) -> None:
    maps = [[("a", 1), ("A", 1), ("", None)], [], None]
    path = job.folder / f"in.{format}"
    table = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "m": pa.array(maps, pa.map_(pa.string(), pa.int64()))})
    (pq if format == "parquet" else orc).write_table(table, path)
    job({"path": str(path)})
    assert [row["m"] if row["m"] is None else list(row["m"]) for row in job.rows()] == maps
