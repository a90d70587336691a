"""Conversion of text, compared with an independent conversion in Python: exact values or a refusal."""

import math
import os
import random
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
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

from spark_jobs.exact_text import Rules, convert, is_exact
from tests.harness.ingester import Ingester, file

_SEED = int(os.environ.get("SLUICE_SEED") or random.SystemRandom().randrange(10**9))
_TEXTS = 4_000
_EXACT = Context(prec=2_000)
_LEAST_FLOAT = 2.0**-126
_LEAST_DOUBLE = Decimal("4.9e-324")
"""The smallest DOUBLE as Java writes it. Python writes 5e-324."""
_FIRST_WHOLE = 2.0**53
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::\d\d)?)?)?", re.ASCII)
_NOT_FINITE = ("NaN", "Inf", "+Inf", "-Inf", "Infinity", "+Infinity", "-Infinity")


def decimal_of(text: str) -> Decimal | None:
    """Return the number that a text states, or None."""
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:
        return None


def as_decimal(text: str, precision: int, scale: int) -> Decimal | None:
    """Return the number if a decimal of this type represents it exactly, else None."""
    number = decimal_of(text)
    if number is None or abs(number) >= Decimal(10) ** (precision - scale):
        return None
    scaled = number.scaleb(scale, _EXACT)
    return number if scaled == scaled.to_integral_value() else None


def as_double(text: str) -> float | None:
    """Return the number if its digits identify a DOUBLE or are those of a large whole number, rounded; else None."""
    number = decimal_of(text)
    if text in _NOT_FINITE or number is None:
        return float(text) if text in _NOT_FINITE else None
    value = float(text)
    if not math.isfinite(value):
        return None
    digits = len(number.normalize(_EXACT).as_tuple().digits)
    roundings = [Context(prec=digits, rounding=each) for each in (ROUND_HALF_UP, ROUND_HALF_DOWN)]
    is_whole = _FIRST_WHOLE <= abs(value) < 2**63
    is_rounded = is_whole and number in [each.create_decimal(Decimal(value)) for each in roundings]
    return value if is_rounded or abs(number) == _LEAST_DOUBLE or Decimal(repr(value)) == number else None


def as_float(text: str) -> float | None:
    """Return the number if a FLOAT with as many digits is written so: nine at most, or all of them; else None."""
    number = decimal_of(text)
    if text in _NOT_FINITE or number is None:
        return float(text) if text in _NOT_FINITE else None
    try:
        value: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    except OverflowError:
        return None
    digits = len(number.normalize(_EXACT).as_tuple().digits)
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
    is_short = digits <= 9 and rounded == number and (digits > 6 or abs(value) >= _LEAST_FLOAT or value == 0)
    return value if is_short or (Decimal(value) == number or float(text) == value == as_double(text)) else None


def as_moment(text: str, *, zone: bool) -> datetime | None:
    """Return the point in time that a text states exactly, or None. Without a zone, it is in UTC."""
    match = _MOMENT.fullmatch(text)
    if match is None or (match[5] and (not zone or not match[3])) or len((match[4] or "").rstrip("0")) > 6:
        return None
    fraction = (match[4] or "").rstrip("0").ljust(6, "0")
    offset = (match[5] or "Z").replace("Z", "+00:00")
    offset = offset if ":" in offset else f"{offset}:00"
    if int(offset[1:3]) > 18 or int(offset[4:]) > 59 or (offset[1:3] == "18" and offset[4:] != "00"):
        return None
    try:
        local = datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}:{match[3] or '00'}.{fraction}")
        delta = timedelta(hours=int(offset[1:3]), minutes=int(offset[4:]))
        return (local + delta if offset[0] == "-" else local - delta) if zone else local
    except (ValueError, OverflowError):
        return None


def as_day(text: str) -> date | None:
    """Return the day that a text states without a time other than midnight, or None."""
    moment = as_moment(text, zone=False)
    return moment.date() if moment and moment.time() == datetime.min.time() else None


def as_whole(text: str, bits: int) -> int | None:
    """Return the whole number that a text states in digits, if a type of so many bits stores it, else None."""
    number = int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else None
    return number if number is not None and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


RULES: dict[str, tuple[DataType, Callable[[str], Any]]] = {
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


_ONCE_WRONG = ("1e23", "-.01e25", "1.00185758066805261e+18", "-5.240401502103003100e18", "+7721622362065163e2")
_LEAST = ("4.9E-324", "+49.0E-325")
"""Numbers that Java writes with other digits than Python: large ones, and the smallest."""


def texts(draw: random.Random) -> list[str]:
    """Return random texts: values of several types, near misses, and others."""
    return [*_ONCE_WRONG, *_LEAST, *(draw.choice((_number, _double, _moment, _almost))(draw) for _ in range(_TEXTS))]


def _number(draw: random.Random) -> str:
    whole = "".join(draw.choices("0123456789", k=draw.choice((0, 1, 2, 5, 8, 9, 16, 20, 21))))
    fraction = "".join(draw.choices("0012345", k=draw.choice((0, 0, 1, 2, 3, 15, 18, 19))))
    fraction += "0" * draw.choice((0, 0, 3, 30))
    point = "." if fraction or draw.random() < 0.1 else ""
    exponent = draw.choice(("", "", "", "", f"e{draw.randrange(-30, 30)}", f"E{draw.randrange(-400, 400)}"))
    return draw.choice(("", "", "-", "+")) + whole + point + fraction + exponent


def _double(draw: random.Random) -> str:
    value: float = struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0]
    short: float = struct.unpack("f", struct.pack("I", draw.getrandbits(32)))[0]
    simple = draw.uniform(-1000, 1000)
    shown = draw.choice((repr(value), repr(simple), f"{simple:.17g}", f"{simple:.16g}", f"{value:.18g}"))
    return draw.choice((shown, shown, f"{short:.9g}", f"{short:.7g}"))


def _moment(draw: random.Random) -> str:
    day = f"{draw.randrange(1600, 2200):04}-{draw.randrange(1, 14):02}-{draw.randrange(1, 33):02}"
    clock = f"{draw.randrange(25):02}:{draw.randrange(61):02}"
    seconds = f":{draw.randrange(61):02}" + draw.choice(
        ("", "", ".", ".5", ".123456", ".123456000", ".123456789", ".000")
    )
    zone = draw.choice(("", "", "", "Z", "+02:00", "-05:30", "+02", "+0200", " UTC", "+19:00", "z"))
    time = draw.choice((clock + seconds, clock, clock + seconds, "00:00", "00:00:00", "00:00:00.000"))
    return draw.choice((day, day + draw.choice("T ") + time, day + draw.choice("T ") + time + zone, clock, day[:7]))


def _almost(draw: random.Random) -> str:
    odd = ["12d", "12f", "0x1p3", "1E5", "1_000", "1,5", "12,50", " 5", "5 ", " ", "\t", "10:30", "2024", "2024-1-5"]
    odd += [
        "١٢",
        "NaN",
        "nan",
        "Infinity",
        "inf",
        "-inf",
        "+Inf",
        "null",
        "today",
        "now",
        "epoch",
        "+",
        "-",
        ".",
    ]
    odd += ["9007199254740993", "9007199254740992", "16777217", "1e400", "1e-400", "3e-324", "-0", "-0.0", "00123"]
    odd += ["2024-02-30", "2023-02-29", "10000-01-01", "2024-01-05T", "2024-01-05 24:00:00", "1e", "e5"]
    odd += ["12.5\n", "2024-01-05\n", "\n", "2024-01-05 10:30:00\n", "1e2\n"]
    return draw.choice(odd)


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
    assert sum(rule(text) is not None for text in given) > _TEXTS / 100


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(
    ("type", "text"),
    [
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
    ],
)
def test_a_stated_type_takes_a_value_exactly_or_refuses_it(job: Ingester, format: str, type: str, text: str) -> None:
    """The job refuses a value that it would have to cut, round or complete, and names file, line, column and value."""
    lines = [f"1,{text}"] if format == "csv" else [f'{{"id": 1, "x": "{text}"}}']
    content = "\n".join([*(["id,x"] if format == "csv" else []), *lines, ""])
    path = file(job, f"in.{format}", content)
    refused = job.refused({"path": path, "schema": f"id INT, x {type}"})
    is_number = text in ("1.005", "9007199254740993", ".11255304035131551e18", "16777217")
    why = "cannot be stored exactly as a" if is_number else "is not a valid"
    assert f"x: '{text}' {why} {type.lower()}" in refused and path in refused, refused


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
