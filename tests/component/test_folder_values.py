"""Values of folders named `column=value`: exactly what the folder says, or a refusal."""

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from sluice.presentation.guessed_types import describe_types
from tests.harness.ingester import Ingester, file

_TEXTS = ["1E5", "12E3", "1d", "2f", "inf", "NaN", "-0", "007", "+7", "0x1p3", "2026-1-5", "10:30", "1L", ".5", "5.",
          "2026-01", "1e400", "99999999999999999999999999999999999999999"]  # fmt: skip


def folders(job: Ingester, format: str, *names: str) -> dict[str, Any]:
    """Write a file into each folder; return the source."""
    for number, name in enumerate(names):
        path = job.folder / "in" / name / f"a.{format}"
        path.parent.mkdir(parents=True)
        if format in ("parquet", "orc"):
            table = pa.table({"id": pa.array([number], pa.int32())})
            (parquet if format == "parquet" else orc).write_table(table, path)
        else:
            path.write_text(f"id\n{number}\n" if format == "csv" else f'{{"id": {number}}}\n')
    return {"path": str(job.folder / "in"), "format": format}


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
def test_a_value_that_is_no_canonical_number_stays_text(job: Ingester, format: str) -> None:
    job(folders(job, format, *(f"sku={text}" for text in _TEXTS)))
    assert [row["sku"] for row in job.rows()] == _TEXTS


@pytest.mark.parametrize("text", ["1E5", "1d", "NaN", "-0", "007", "2026-1-5"])
def test_one_value_that_is_no_canonical_number_stays_text(job: Ingester, text: str) -> None:
    job(folders(job, "csv", f"sku={text}"))
    assert job.rows() == [{"id": 0, "sku": text}]


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_column_of_folders_without_values_has_no_type_yet(job: Ingester, format: str) -> None:
    source = folders(job, format, "m=__HIVE_DEFAULT_PARTITION__")
    assert describe_types(job(source).types).endswith("no value yet, so left out: m")
    job(source, mode="overwrite")
    assert job.rows() == [{"id": 0}]
    copy = job.folder / "in" / "m=7" / f"b.{format}"
    copy.parent.mkdir()
    copy.write_bytes((copy.parent.parent / "m=__HIVE_DEFAULT_PARTITION__" / f"a.{format}").read_bytes())
    job(source, mode="overwrite")
    assert sorted(job.rows(), key=str) == [{"id": 0, "m": 7}, {"id": 0, "m": None}]


def test_types_of_folders_are_guessed_like_those_of_csv(job: Ingester) -> None:
    first = "a=1/b=0.10/c=2026-01-31/d=2026-01-31 10%3A30%3A00/e=true/f=99999999999999999999/g=123456789.123456789"
    second = first.replace("a=1/", "a=-20/").replace("f=9", "f=-9").replace("g=1", "g=123456789012")
    answer = job(folders(job, "parquet", first, second, first.replace("a=1/", "a=__HIVE_DEFAULT_PARTITION__/")))
    rows = job.rows()
    assert rows[0] == {
        "id": 0,
        "a": 1,
        "b": 0.1,
        "c": date(2026, 1, 31),
        "d": datetime(2026, 1, 31, 10, 30, tzinfo=timezone.utc),
        "e": True,
        "f": Decimal("99999999999999999999"),
        "g": Decimal("123456789.123456789"),
    }
    assert (rows[1]["a"], rows[2]["a"]) == (-20, None)
    assert "e BOOLEAN" in str([f"{each.name} {each.type}" for each in answer.types.columns])


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
@pytest.mark.parametrize(("type", "value"), [("STRING", "01"), ("INT", 1), ("DECIMAL(4,1)", Decimal("1.0"))])
def test_the_stated_type_of_a_folder(job: Ingester, format: str, type: str, value: object) -> None:
    source = folders(job, format, "y=2026/m=01", "y=2026/m=02")
    job({**source, "schema": f"id INT, y INT, m {type}"})
    assert job.rows()[0] == {"id": 0, "y": 2026, "m": value}


@pytest.mark.parametrize(
    ("name", "type"),
    [("1d", "DOUBLE"), ("2026-01", "DATE"), ("1.005", "DECIMAL(4,2)"), ("1.0", "INT"), ("yes", "BOOLEAN")],
)
def test_a_folder_that_is_no_value_of_its_stated_type(job: Ingester, name: str, type: str) -> None:
    source = folders(job, "parquet", f"v={name}")
    refused = job.refused({**source, "schema": f"id INT, v {type}"})
    assert refused.startswith(f"the value of the folder v={name} is not exactly a value of the type"), refused
    assert "which source.schema states: rename the folder, or state another type for v" in refused


def test_a_folder_has_the_type_of_the_table(job: Ingester) -> None:
    job({"path": file(job, "a.csv", "id,m,t\n7,1,x\n")})
    job(folders(job, "csv", "m=02/t=1E5"))
    assert job.rows()[0] == {"id": 0, "m": 2, "t": "1E5"}
    refused = job.refused({"path": file(job, "new/m=x/t=1/a.csv", "id\n1\n").split("/m=")[0], "format": "csv"})
    assert refused.startswith("the value of the folder m=x is not exactly a value of the type int, which "), refused


def test_the_zone_of_times_in_folders(job: Ingester) -> None:
    source = folders(job, "csv", "at=2026-01-31 10%3A30%3A00/d=2026-01-31")
    options = {"timeZone": "Europe/Berlin", "dateFormat": "dd.MM.yyyy"}
    job({**source, "schema": "id INT, at TIMESTAMP, d DATE", "options": options})
    assert job.rows() == [{"id": 0, "at": datetime(2026, 1, 31, 9, 30, tzinfo=timezone.utc), "d": date(2026, 1, 31)}]


def test_folders_that_spark_reads_as_one_value_are_refused(job: Ingester) -> None:
    refused = job.refused(folders(job, "csv", "sku=%C3%A9", "sku=Ã©"))
    assert refused == "Spark cannot tell the folders sku=é and sku=Ã© apart: rename one of them"
