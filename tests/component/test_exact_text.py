"""Conversion of text, compared with an independent conversion in Python: exact values or a refusal."""

import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.values.exact_text import Rules, convert, is_exact
from tests.harness.exact_texts import (
    NUMBER_OF_TEXTS,
    as_day,
    as_decimal,
    as_double,
    as_float,
    as_moment,
    as_whole,
    texts,
)
from tests.harness.ingester import Ingester, file
from tests.harness.seeds import new_seed

_SEED = new_seed()


RULES: dict[str, tuple[DataType, Callable[[str], Any]]] = {
    "tinyint": (ByteType(), lambda text: as_whole(text, 8)),
    "int": (IntegerType(), lambda text: as_whole(text, 32)),
    "bigint": (LongType(), lambda text: as_whole(text, 64)),
    "decimal(10,2)": (DecimalType(10, 2), lambda text: as_decimal(text, 10, 2)),
    "decimal(38,18)": (DecimalType(38, 18), lambda text: as_decimal(text, 38, 18)),
    "decimal(5,0)": (DecimalType(5, 0), lambda text: as_decimal(text, 5, 0)),
    "double": (DoubleType(), as_double),
    "float": (FloatType(), as_float),
    "date": (DateType(), as_day),
    "timestamp": (TimestampType(), lambda text: as_moment(text, zone=True)),
    "timestamp_ntz": (TimestampNTZType(), lambda text: as_moment(text, zone=False)),
}


@pytest.mark.parametrize("name", RULES)
def test_each_text_is_converted_exactly_or_not_at_all(spark: SparkSession, name: str) -> None:
    """Thousands of generated texts: each is converted to the value that it states, or reported as not exact."""
    type, rule = RULES[name]
    print(f"seed {_SEED}")
    given = texts(random.Random(f"{name} {_SEED}"))
    read = spark.createDataFrame([(text,) for text in given], "text STRING")
    field, have = StructField("text", type), StringType()
    exact = is_exact(F.col("text"), type, have)
    value = F.when(exact, convert(F.col("text"), field, have))
    shown = value.cast(TimestampNTZType()) if isinstance(type, TimestampType) else value
    rows = read.select("text", shown.alias("value"), exact.alias("is_exact")).collect()
    wrong = []
    for text, row in zip(given, rows, strict=True):
        expected = rule(text)
        same = row["value"] == expected or (expected != expected and row["value"] != row["value"])  # noqa: PLR0124
        if not same or row["is_exact"] != (expected is not None):
            wrong.append((text, row["value"], row["is_exact"], expected))
    assert not wrong, wrong[:20]
    assert sum(rule(text) is not None for text in given) > NUMBER_OF_TEXTS / 100


_NOT_EXACT = [
    ("DATE", "2024-01-05 13:45:00"),
    ("DATE", "2024-01"),
    ("TIMESTAMP", "2024-01-05 10:00:00.123456789"),
    ("TIMESTAMP", "10:30"),
    ("TIMESTAMP_NTZ", "2024-01-05 10:00:00+02:00"),
    ("DECIMAL(10,2)", "1.005"),
    ("DOUBLE", "12d"),
    ("DOUBLE", " "),
    ("DOUBLE", "9007199254740993"),
    ("DOUBLE", ".11255304035131551e18"),
    ("FLOAT", "16777217"),
    ("DECIMAL(10,2)", " 2"),
]
"""Texts that a job would have to cut, round or complete to store them as the type."""


_COLUMNS = {type: f"x{number}" for number, type in enumerate(dict.fromkeys(type for type, _ in _NOT_EXACT))}


def not_exact(format: str, cases: list[tuple[str, str]]) -> str:
    """Return a file with one row for each case. Its text is in the column of its type, the others are empty."""
    rows: list[dict[str, Any]] = [{"id": at, _COLUMNS[type]: text} for at, (type, text) in enumerate(cases)]
    if format == "json":
        return "".join(f"{json.dumps(row)}\n" for row in rows)
    names = ["id", *_COLUMNS.values()]
    lines = [",".join(str(row.get(name, "")) for name in names) for row in rows]
    return "\n".join([",".join(names), *lines, ""])


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(
    ("first", "why"), [(0, "is not a valid date"), (5, "cannot be stored exactly as a decimal(10,2)")]
)
def test_a_stated_type_refuses_a_value_that_it_cannot_store_exactly(
    job: Ingester, format: str, first: int, why: str
) -> None:
    """Every row is refused. The message names file, column and value of the first one."""
    cases = [*_NOT_EXACT[first:], *_NOT_EXACT[:first]]
    path = file(job, f"in.{format}", not_exact(format, cases))
    schema = ", ".join(["id INT", *(f"{name} {type}" for type, name in _COLUMNS.items())])
    refused = job.refused({"path": path, "schema": schema})
    type, text = cases[0]
    assert path in refused and f"{_COLUMNS[type]}: '{text}' {why}" in refused, refused
    assert f"; {len(cases)} such rows" in refused, refused


def test_an_empty_text_is_no_value_in_csv_and_no_number_in_json(job: Ingester) -> None:
    job({"path": file(job, "in.csv", 'id,x\n1,""\n2,\n'), "schema": "id INT, x DOUBLE"})
    assert [row["x"] for row in job.rows()] == [None, None]
    refused = job.refused({"path": file(job, "in.jsonl", '{"id": 3, "x": ""}\n')})
    assert "x: '' is not a valid double" in refused, refused


@pytest.mark.parametrize("name", [name for name, (type, _) in RULES.items() if isinstance(type, NumericType)])
def test_a_number_with_a_leading_zero_or_a_plus_sign_may_be_refused(spark: SparkSession, name: str) -> None:
    """Text for a column that no schema states may be a code: 00123 is not 123 then."""
    type, rule = RULES[name]
    print(f"seed {_SEED}")
    drawn = texts(random.Random(f"{name} {_SEED}"))[:1_000]
    given = [f"{mark}{text}" for text in drawn for mark in ("", "0", "+", "-", "-0", "00")]
    read = spark.createDataFrame([(text,) for text in given], "text STRING")
    rules = [Rules(refuses_marks=refuses) for refuses in (False, True)]
    conditions = [is_exact(F.col("text"), type, StringType(), each) for each in rules]
    rows = read.select(*[each.alias(f"is_{n}") for n, each in enumerate(conditions)]).collect()
    wrong = [
        (text, row)
        for text, row in zip(given, rows, strict=True)
        if row["is_1"] != (row["is_0"] and not re.match(r"\+|-?0[0-9]", text)) or (text == "00" and row["is_1"])
    ]
    assert not wrong, wrong[:20]
    assert sum(row["is_0"] != row["is_1"] for row in rows) > 10
    assert sum(rule(text) is not None for text in given) > 10


@pytest.mark.parametrize(
    ("type", "format", "text"),
    [
        ("INT", "csv", "00123"),
        ("BIGINT", "csv", "+4712345678"),
        ("BIGINT", "csv", "-007"),
        ("DECIMAL(10,2)", "csv", "007.50"),
        ("DOUBLE", "csv", "+1.5"),
        ("DECIMAL(10,2)", "json", '"007.50"'),
    ],
)
def test_codes_do_not_become_numbers_of_a_table(job: Ingester, type: str, format: str, text: str) -> None:
    """The first files gave the column its type. A later file has codes: they are refused, unless `schema` says so."""
    job({"path": file(job, "first.csv", "id,x\n1,12\n"), "schema": f"id INT, x {type}"})
    content = f"id,x\n2,{text}\n" if format == "csv" else f'{{"id": 2, "x": {text}}}\n'
    path = file(job, f"then.{format}", content)
    refused = job.refused({"path": path})
    assert refused == (
        f"{path}: x: '{text.strip(chr(34))}' has a leading zero or a plus sign, "
        f"which the table's type {type.lower()} would drop: if it is a number, state its type in `source.schema`; if "
        "it is a code, the column must be STRING; 1 such row"
    )
    job({"path": path, "schema": f"id INT, x {type}"})
    assert sorted(float(row["x"]) for row in job.rows()) == sorted([12.0, float(text.strip('"'))])


def test_numbers_of_folders_may_have_leading_zeros(job: Ingester) -> None:
    """A table whose column `month` is INT takes folders named 01 to 12."""
    job({"path": file(job, "first.csv", "id,month\n1,1\n")})
    folder = job.folder / "in" / "month=02"
    folder.mkdir(parents=True)
    (folder / "second.csv").write_text("id\n2\n")
    job({"path": str(folder.parent), "format": "csv"})
    assert sorted((row["id"], row["month"]) for row in job.rows()) == [(1, 1), (2, 2)]


def test_a_text_that_stands_for_nan_changes_no_other_value(job: Ingester) -> None:
    options = {"nanValue": "n/a", "positiveInf": "+oo", "negativeInf": "-oo"}
    stated: dict[str, Any] = {"schema": "id INT, x DOUBLE, y FLOAT", "options": options}
    job({"path": file(job, "in.csv", "id,x,y\n1,n/a,+oo\n2,-oo,1.5\n3,0.1,n/a\n"), **stated})
    rows = {row["id"]: (row["x"], row["y"]) for row in job.rows()}
    assert math.isnan(rows[1][0]) and math.isnan(rows[3][1])
    assert (rows[1][1], rows[2], rows[3][0]) == (math.inf, (-math.inf, 1.5), 0.1)
    lines = ["4,12345678901234567890,1", "5,1e-400,1", "6,1e400,1", "7,1,16777217"]
    refused = job.refused({"path": file(job, "wrong.csv", "\n".join(["id,x,y", *lines, ""])), **stated})
    assert "x: '12345678901234567890' cannot be stored exactly as a double; 4 such rows. Correct" in refused, refused


def test_another_quote_is_doubled_too(job: Ingester) -> None:
    content = "id,x\n1,'it''s'\n2,''''\n3,'a,b'\n"
    job({"path": file(job, "in.csv", content), "schema": "id INT, x STRING", "options": {"quote": "'"}})
    assert {row["id"]: row["x"] for row in job.rows()} == {1: "it's", 2: "'", 3: "a,b"}
