"""Typed files of other programs: times, days and texts that Spark would change, or no other reader could read."""

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from tests.harness.ingester import Ingester

_NANOSECONDS = pa.timestamp("ns")
_EXACT, _LOST = 1769855400123456000, 1769855400123456789


def _write(path: Path, **columns: Any) -> str:
    """Write an ORC file, or a Parquet file with times as INT96; return its path."""
    table = pa.table(columns)
    if path.suffix == ".orc":
        orc.write_table(table, str(path))
    else:
        pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    return str(path)


def _by_duckdb(query: str, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT PARQUET)")


def _times(job: Ingester) -> list[str | None]:
    return [row["t"] and row["t"].replace(tzinfo=None).isoformat(" ") for row in job.rows()]


# --- nanoseconds ---


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_exact_times_of_another_program(job: Ingester, form: str) -> None:
    moments = pa.array([_EXACT, None, -2 * 10**9], _NANOSECONDS)
    path = _write(
        job.folder / f"in.{form}", id=[1, 2, 3], t=moments, l=pa.array([[5000], [], None], pa.list_(_NANOSECONDS))
    )
    job({"path": path})
    assert _times(job) == ["2026-01-31 10:30:00.123456", None, "1969-12-31 23:59:58"]


def test_times_before_1970_in_int96(job: Ingester) -> None:
    job({"path": _write(job.folder / "in.parquet", id=[1], t=pa.array([-1000], _NANOSECONDS))})
    assert _times(job) == ["1969-12-31 23:59:59.999999"]


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_nanoseconds_are_refused(job: Ingester, form: str) -> None:
    _write(job.folder / f"a.{form}", id=[1], t=pa.array([_EXACT], _NANOSECONDS))
    bad = _write(job.folder / f"b.{form}", id=[2, 3], t=pa.array([_LOST, _LOST], _NANOSECONDS))
    refused = job.refused({"path": f"{job.folder}/*.{form}"}, show_values=True)
    assert refused.startswith(f"t: 2 values ({bad}, such as 2026-01-31 10:30:00.123456789) with nanoseconds"), refused
    refused = job.refused({"path": f"{job.folder}/*.{form}"})
    assert "10:30" not in refused and "where the file is written" in refused, refused


@pytest.mark.parametrize("form", ["orc", "parquet"])
@pytest.mark.parametrize("inside", ["list", "struct", "map"])
def test_nested_nanoseconds_are_refused(job: Ingester, form: str, inside: str) -> None:
    types = {
        "list": ([[None, _LOST]], pa.list_(_NANOSECONDS)),
        "struct": ([{"b": b"x" * 12, "t": _LOST}], pa.struct({"b": pa.binary(), "t": _NANOSECONDS})),
        "map": ([[("k", _LOST)]], pa.map_(pa.string(), _NANOSECONDS)),
    }
    path = _write(job.folder / f"in.{form}", id=[1], v=pa.array(*types[inside]))
    assert job.refused({"path": path}).startswith(f"v: 1 value ({path}) with nanoseconds")


def test_times_of_int96_that_spark_cannot_hold(job: Ingester) -> None:
    """DuckDB and others write any day into an INT96."""
    path = _write(job.folder / "in.parquet", id=[1], t=pa.array([2**62], pa.timestamp("ms")))
    assert "year outside of 1 to 9999" in job.refused({"path": path})


# --- the calendar of ORC ---


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pa.array([datetime.date(1582, 10, 14), datetime.date(2026, 1, 1)]), "1582-10-04"),
        (pa.array([datetime.datetime(1500, 1, 1, 1, 2, 3), None], pa.timestamp("us")), "1500-01-01 01:02:03"),
    ],
)
def test_an_old_day_in_orc_without_a_calendar(job: Ingester, values: pa.Array, shown: str) -> None:
    path = _write(job.folder / "in.orc", id=[1, 2], d=values)
    refused = job.refused({"path": path}, show_values=True)
    assert refused.startswith(f"d: 1 value ({path}, such as {shown}"), refused
    assert "before 1582-10-15" in refused and "write the file as Parquet" in refused, refused


def test_the_first_day_of_the_calendar_in_orc(job: Ingester) -> None:
    first = datetime.date(1582, 10, 15)
    job({"path": _write(job.folder / "in.orc", id=[1], d=pa.array([first]))})
    assert job.rows()[0]["d"] == first


@pytest.mark.parametrize("is_nested", [False, True])
def test_times_of_orc_are_read_in_utc_alone(job: Ingester, spark: SparkSession, is_nested: bool) -> None:
    """Spark would read 10:30 as 15:30 in the time zone of New York."""
    time = datetime.datetime(2026, 1, 31, 10, 30)
    path = _write(job.folder / "in.orc", id=[1], t=[[time] if is_nested else time])
    zones = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("America/New_York"))
    try:
        refused = job.refused({"path": path})
    finally:
        zones.setDefault(before)
    assert "in the time zone America/New_York, in which it would read the times of the ORC files as other" in refused
    job({"path": path})
    read = time.replace(tzinfo=datetime.timezone.utc)
    assert job.rows()[0]["t"] == ([read] if is_nested else read)


def test_old_days_and_times_that_spark_wrote_into_orc(job: Ingester, spark: SparkSession) -> None:
    folder = job.folder / "spark"
    old = "SELECT 1 AS id, DATE'1500-01-01' AS d, TIMESTAMP'1500-01-01 00:00:00.123456' AS t"
    spark.sql(old).coalesce(1).write.orc(str(folder))
    job({"path": f"{folder}/*.orc"})
    assert job.rows()[0]["d"] == datetime.date(1500, 1, 1)
    assert _times(job) == ["1500-01-01 00:00:00.123456"]


@pytest.mark.parametrize("microseconds", [-1, -500_000, -1_000_001, -31_532_338_876_544])
def test_a_fraction_of_a_second_before_1970_in_orc(job: Ingester, microseconds: int) -> None:
    times = pa.array([microseconds, 0], pa.timestamp("us"))
    path = _write(job.folder / "in.orc", id=[1, 2], t=times)
    assert job.refused({"path": path}).startswith(f"t: 1 value ({path}) before 1970 with a fraction of a second")


# --- years ---

_EXTREMES = {
    "infinity": "'infinity'::DATE",
    "-infinity": "'-infinity'::DATE",
    "time infinity": "'infinity'::TIMESTAMP",
    "time -infinity": "'-infinity'::TIMESTAMPTZ",
    "year 10000": "DATE '9999-12-31' + 1",
    "year 0": "DATE '0001-01-01' - 1",
    "in a list": "['infinity'::DATE]",
    "in a struct": "{'d': 'infinity'::DATE}",
}


@pytest.mark.parametrize("name", _EXTREMES)
def test_a_year_that_other_readers_cannot_read(job: Ingester, name: str) -> None:
    path = job.folder / "in.parquet"
    _by_duckdb(f"SELECT 1 AS id, {_EXTREMES[name]} AS d", path)
    refused = job.refused({"path": str(path)})
    assert refused.startswith(f"d: 1 row ({path}) with a year outside of 1 to 9999"), refused


def test_the_first_and_the_last_year(job: Ingester) -> None:
    path = job.folder / "in.parquet"
    first, last = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
    _by_duckdb(f"SELECT 1 AS id, {first} AS t, {first}::DATE AS d UNION ALL SELECT 2, {last}, {last}::DATE", path)
    job({"path": str(path)})
    assert [row["d"].year for row in job.rows()] == [1, 9999]
    assert _times(job) == ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"]


def test_an_infinite_day_that_a_transform_replaces(job: Ingester) -> None:
    path = job.folder / "in.parquet"
    _by_duckdb("SELECT 1 AS id, 'infinity'::DATE AS d", path)
    job({"path": str(path)}, transform="SELECT id, IF(d > DATE'9999-12-31', NULL, d) AS d FROM source")
    assert job.rows() == [{"id": 1, "d": None}]


def test_a_transform_that_makes_such_a_year(job: Ingester) -> None:
    path = job.folder / "in.csv"
    path.write_text("id,d\n1,9999-12-31\n")
    refused = job.refused({"path": str(path)}, transform="SELECT id, date_add(d, 1) AS d FROM source")
    assert refused.startswith(f"d: 1 row ({path}) with a year outside"), refused


def test_the_year_0_in_text(job: Ingester) -> None:
    path = job.folder / "in.csv"
    path.write_text("id,d\n1,0000-01-01\n")
    assert "d: '0000-01-01' is not a valid date" in job.refused({"path": str(path), "schema": "id INT, d DATE"})


# --- text ---


def _broken(values: list[bytes], type: pa.DataType) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string()) if pa.types.is_string(type) else pa.array(values, type)


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_text_that_is_not_utf8(job: Ingester, form: str) -> None:
    broken = [b"\xff\xfe", b"caf\xe9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]
    texts = [b"good", *broken]
    path = _write(job.folder / f"in.{form}", id=list(range(len(texts))), name=_broken(texts, pa.string()))
    refused = job.refused({"path": path}, show_values=True)
    assert refused.startswith(f"name: 5 rows ({path}, such as 0xFFFE) with bytes that are not UTF-8"), refused
    assert "0xFFFE" not in job.refused({"path": path})


def test_nested_text_that_is_not_utf8(job: Ingester) -> None:
    texts = pa.ListArray.from_arrays([0, 2], _broken([b"a", b"\xff"], pa.string()))
    path = _write(job.folder / "in.parquet", id=[1], names=texts)
    assert job.refused({"path": path}).startswith(f"names: 1 row ({path}) with bytes")


def test_bytes_for_a_column_of_text(job: Ingester) -> None:
    job({"path": _write(job.folder / "a.parquet", id=[1], name=["a"])})
    good = _write(job.folder / "b.parquet", id=[2], name=pa.array(["é".encode()], pa.binary()))
    job({"path": good})
    bad = _write(job.folder / "c.parquet", id=[3], name=pa.array([b"\xe9"], pa.binary()))
    assert job.refused({"path": bad}).startswith(f"name: 1 row ({bad}) with bytes that are not UTF-8")
    assert [row["name"] for row in job.rows()] == ["a", "é"]


def test_the_remedy_for_text_that_is_not_utf8(job: Ingester) -> None:
    path = _write(job.folder / "in.parquet", id=[1], name=_broken([b"caf\xe9"], pa.string()))
    refused = job.refused({"path": path})
    remedy = refused.partition("such as ")[2]
    assert remedy == "decode(CAST(`name` AS BINARY), 'ISO-8859-1')"
    job({"path": path}, transform=f"SELECT id, {remedy} AS name FROM source")
    assert job.rows() == [{"id": 1, "name": "café"}]


def test_text_among_more_than_a_hundred_columns(job: Ingester) -> None:
    names = {f"c{number}": _broken([b"x"], pa.string()) for number in range(130)}
    path = _write(job.folder / "in.parquet", id=[1], **{**names, "c117": _broken([b"\xff"], pa.string())})
    assert job.refused({"path": path}).startswith(f"c117: 1 row ({path}) with bytes that are not UTF-8")
