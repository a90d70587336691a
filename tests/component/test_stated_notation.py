"""Values in a notation that options state: exactly the value of the file, or a refusal with file, column and value."""

import json
import random
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from sluice.errors import InvalidPipeline
from sluice.pipeline.source_options import check_options
from spark_jobs.values.stated_notation import StatedNotation
from tests.harness.ingester import Ingester, file
from tests.harness.seeds import new_seed

_SEED = new_seed()
_PATTERNS = 60
_TYPES: dict[str, DataType] = {
    "dateFormat": DateType(),
    "timestampFormat": TimestampType(),
    "timestampNTZFormat": TimestampNTZType(),
}


@pytest.mark.parametrize(
    ("type", "options", "text", "value"),
    [
        ("DATE", {"dateFormat": "dd.MM.yyyy"}, "05.01.2024", "2024-01-05"),
        ("DATE", {"dateFormat": "M/d/yyyy H:mm"}, "1/5/2024 0:00", "2024-01-05"),
        ("DATE", {"dateFormat": "M/d/yyyy"}, "01/5/2024", "2024-01-05"),
        ("DATE", {"dateFormat": "yyyy-MM"}, "2024-03", "2024-03-01"),
        ("DATE", {"dateFormat": "d. MMMM yyyy", "locale": "de-DE"}, "5. Mai 2024", "2024-05-05"),
        ("TIMESTAMP", {"timestampFormat": "dd.MM.yyyy HH:mm"}, "05.01.2024 10:30", "2024-01-05 10:30:00"),
        ("TIMESTAMP", {"timestampFormat": "dd.MM.yyyy h:mm a"}, "05.01.2024 1:30 PM", "2024-01-05 13:30:00"),
        (
            "TIMESTAMP",
            {"timestampFormat": "yyyyMMdd HHmmss.SSSSSS"},
            "20240105 103000.123456",
            "2024-01-05 10:30:00.123456",
        ),
        ("TIMESTAMP", {"timestampFormat": "yyyy-MM-dd HH:mmXXX"}, "2024-01-05 10:30+02:00", "2024-01-05 08:30:00"),
        (
            "TIMESTAMP",
            {"timestampFormat": "dd.MM.yyyy HH:mm", "timeZone": "Europe/Berlin"},
            "05.07.2024 10:30",
            "2024-07-05 08:30:00",
        ),
        (
            "TIMESTAMP",
            {"timestampFormat": "yyyy-MM-dd HH:mmXXX", "timeZone": "Europe/Berlin"},
            "2024-07-05 10:30Z",
            "2024-07-05 10:30:00",
        ),
        ("TIMESTAMP", {"timeZone": "Europe/Berlin"}, "2024-01-05 10:30:00", "2024-01-05 09:30:00"),
        ("TIMESTAMP", {"timeZone": "Europe/Berlin"}, "2024-01-05", "2024-01-04 23:00:00"),
        ("TIMESTAMP", {"timeZone": "Europe/Berlin"}, "2024-01-05T10:30:00Z", "2024-01-05 10:30:00"),
        ("TIMESTAMP", {"timeZone": "Europe/Berlin"}, "2024-10-27 02:30:00", "2024-10-27 00:30:00"),
        ("TIMESTAMP", {"timeZone": "+05:30"}, "2024-01-05 10:30:00", "2024-01-05 05:00:00"),
        ("TIMESTAMP_NTZ", {"timestampNTZFormat": "dd.MM.yyyy HH:mm"}, "05.01.2024 10:30", "2024-01-05 10:30:00"),
        ("TIMESTAMP_NTZ", {"timeZone": "Europe/Berlin"}, "2024-01-05 10:30:00", "2024-01-05 10:30:00"),
    ],
)
def test_options_state_the_notation_of_times(
    job: Ingester, type: str, options: dict[str, str], text: str, value: str
) -> None:
    format = _format_of(text)
    job({"path": _file_of(job, format, [text]), "schema": f"id INT, x {type}", "options": options})
    (row,) = job.rows()
    assert str(row["x"]).removesuffix("+00:00") == value


@pytest.mark.parametrize(
    ("type", "options", "texts"),
    [
        ("DATE", {"dateFormat": "yyyy-MM-dd HH:mm"}, ["2024-01-05 10:30"]),
        ("DATE", {"dateFormat": "dd.MM.yyyy"}, ["2024-01-05", "30.02.2024", "05.01.2024 ", "05.01.20245"]),
        ("DATE", {"dateFormat": "d.M.y"}, ["5.1.10000"]),
        ("TIMESTAMP", {"timestampFormat": "dd.MM.yyyy HH:mm"}, ["05.01.2024 10:30:15"]),
        ("TIMESTAMP", {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}, ["2024-01-05 10:30:15.123456789"]),
        ("TIMESTAMP", {"timeZone": "Europe/Berlin"}, ["2024-03-31 02:30:00"]),
        ("TIMESTAMP", {"timestampFormat": "dd.MM.yyyy HH:mm", "timeZone": "Europe/Berlin"}, ["31.03.2024 02:30"]),
        ("TIMESTAMP_NTZ", {"timestampNTZFormat": "dd.MM.yyyy HH:mm"}, ["05.01.2024 10:30Z"]),
    ],
)
def test_values_in_another_notation_are_refused(
    job: Ingester, type: str, options: dict[str, str], texts: list[str]
) -> None:
    path = _file_of(job, _format_of(texts[0]), texts)
    refused = job.refused({"path": path, "schema": f"id INT, x {type}", "options": options})
    assert f"{path}: x: '{texts[0]}' is not a valid {type.lower()}" in refused
    assert f"; {len(texts)} such row" in refused
    for name, stated in options.items():
        assert f"{name} {stated}" in refused


def _format_of(text: str) -> str:
    """Return CSV or JSON, each for about half of the cases: both are converted by the same expressions."""
    return ("csv", "json")[sum(text.encode()) % 2]


def _file_of(job: Ingester, format: str, texts: list[str]) -> str:
    line = '{},"{}"\n' if format == "csv" else '{{"id": {}, "x": "{}"}}\n'
    lines = [line.format(at, text) for at, text in enumerate(texts)]
    return file(job, f"in.{format}", "".join([*(["id,x\n"] if format == "csv" else []), *lines]))


@pytest.mark.parametrize(
    ("locale", "values"),
    [
        ("de-DE", {"12,50": "12.50", "-1.234.567,5": "-1234567.50", "1.005": "1005.00"}),
        ("en-US", {"1,005.25": "1005.25", "1.5": "1.50"}),
        ("fr-FR", {"1\u202f234,5": "1234.50"}),
        ("de-CH", {"1\u2019234.5": "1234.50"}),
    ],
)
def test_a_locale_states_point_and_groups(job: Ingester, locale: str, values: dict[str, str]) -> None:
    source: dict[str, Any] = {"schema": "id INT, x DECIMAL(10,2), y DOUBLE", "options": {"locale": locale}}
    lines = [f'{at},"{text}","{text}"' for at, text in enumerate(values)]
    job({"path": file(job, "in.csv", "\n".join(["id,x,y", *lines, ""])), **source})
    assert [(str(row["x"]), row["y"]) for row in job.rows()] == [(each, float(each)) for each in values.values()]


@pytest.mark.parametrize(
    ("locale", "texts"),
    [
        ("de-DE", ["1.5", "12,555", "12.34,5", "1.2345", "1,5,0", "1 234", "12 EUR"]),
        ("en-US", ["1.005", "12,50", "١٢"]),
    ],
)
def test_numbers_in_another_notation_are_refused(job: Ingester, locale: str, texts: list[str]) -> None:
    lines = [f'{at},"{text}"' for at, text in enumerate(texts)]
    path = file(job, "in.csv", "\n".join(["id,x", *lines, ""]))
    refused = job.refused({"path": path, "schema": "id INT, x DECIMAL(10,2)", "options": {"locale": locale}})
    assert f"{path}: x: '{texts[0]}' " in refused and f" decimal(10,2) in the notation of {locale}" in refused
    assert f"; {len(texts)} such rows" in refused


def test_a_locale_does_not_change_decimals_of_json(job: Ingester) -> None:
    path = file(job, "in.jsonl", '{"id": 1, "x": "1.005"}\n')
    source = {"path": path, "schema": "id INT, x DECIMAL(10,2)", "options": {"locale": "de-DE"}}
    assert "source.options.locale" in job.refused(source)


def test_a_guessed_time_is_in_the_stated_zone(job: Ingester) -> None:
    path = file(job, "in.csv", "id,x\n1,2024-01-05 10:30:00\n")
    job({"path": path, "options": {"timeZone": "Europe/Berlin"}})
    assert [str(row["x"])[:19] for row in job.rows()] == ["2024-01-05 09:30:00"]


@pytest.mark.parametrize("text", ["0000-01-01", "0001-01-01 00:30:00+01:00", "9999-12-31 23:30:00-01:00"])
def test_years_that_no_other_reader_knows_are_refused(job: Ingester, text: str) -> None:
    """PyIceberg reads the years 1 to 9999."""
    path = file(job, "in.csv", f"id,x\n1,{text}\n")
    assert f"'{text}' is not a valid timestamp" in job.refused({"path": path, "schema": "id INT, x TIMESTAMP"})


@pytest.mark.parametrize("separator", ["\t", "\\t", " "])
def test_a_row_of_empty_values_is_a_row(job: Ingester, separator: str) -> None:
    rows = ["id", "x", "y"], ["1", "a", "b"], ["", "", ""], ["2", "", "c"]
    content = "\n".join(separator.replace("\\t", "\t").join(row) for row in rows) + "\n\n"
    job({"path": file(job, "in.csv", content), "schema": "id INT, x STRING, y STRING", "options": {"sep": separator}})
    assert [tuple(row.values()) for row in job.rows()] == [(1, "a", "b"), (2, None, "c"), (None, None, None)]


def test_a_quote_that_the_options_do_not_escape_is_refused(job: Ingester) -> None:
    path = file(job, "in.csv", 'id,x\n1,"a""b"\n')
    refused = job.refused({"path": path, "schema": "id INT, x STRING", "options": {"escape": "\\"}})
    assert path in refused and "line 2" in refused and "source.options.escape" in refused


@pytest.mark.parametrize(
    "content", ['{"id": 1, "": 2}\n', '{"id": 1, "x": {"": 2}}\n', '[{"id": 1, "x": [{"": 2}]}]\n']
)
@pytest.mark.parametrize("schema", [None, "id INT"])
def test_a_field_without_a_name_is_refused(job: Ingester, content: str, schema: str | None) -> None:
    path = file(job, "in.json", content)
    source = {"path": path, "schema": schema} if schema else {"path": path}
    refused = job.refused(source)
    assert "empty name" in refused, refused


@pytest.mark.parametrize("text", [r"\ud83d", r"a\uDE00b", r"\ude00\ud83d", r"\\\ud83d"])
@pytest.mark.parametrize("form", ["lines", "array"])
def test_half_a_character_is_refused(job: Ingester, text: str, form: str) -> None:
    record = f'{{"id": 1, "x": "{text}"}}'
    content = f'{{"id": 0, "x": "fine"}}\n{record}\n' if form == "lines" else f'[{{"id": 0, "x": "é"}},\n{record}]\n'
    path = file(job, "in.json", content)
    refused = job.refused({"path": path})
    assert f"{path}: line 2" in refused, refused


@pytest.mark.parametrize("text", [r"\ud83d\ude00", r"\\ud83d", r"\uD83D\uDE00\ud83d\ude00"])
def test_whole_characters_are_read(job: Ingester, text: str) -> None:
    content = f'{{"id": 1, "x": "{text}"}}\n'
    job({"path": file(job, "in.json", content)})
    assert [row["x"] for row in job.rows()] == [json.loads(content)["x"]]


@pytest.mark.parametrize("option", ["dateFormat", "timestampFormat", "timestampNTZFormat"])
def test_spark_reads_back_what_it_writes_in_every_accepted_pattern(spark: SparkSession, option: str) -> None:
    """Generated patterns that `check_notation` accepts: Spark knows each, and no value changes on the way."""
    print(f"seed {_SEED}")
    draw = random.Random(f"{option} {_SEED}")
    wanted = _TYPES[option]
    patterns = sorted(
        {pattern for pattern in (_pattern(draw) for _ in range(_PATTERNS)) if _is_accepted(option, pattern)}
    )
    assert len(patterns) > _PATTERNS / 20
    moment = datetime(draw.randrange(2000, 2099), draw.randrange(1, 13), draw.randrange(1, 29), 13, 45, 59, 120000)
    rows = spark.createDataFrame([(moment,)], "moment TIMESTAMP_NTZ").select(F.col("moment").cast("TIMESTAMP"))
    written = rows.select([F.date_format("moment", pattern).alias(f"t{at}") for at, pattern in enumerate(patterns)])
    read = [
        StatedNotation({option: each}).value(F.col(f"t{at}"), wanted, F.lit(None)) for at, each in enumerate(patterns)
    ]
    shown = [F.date_format(value.cast("TIMESTAMP"), pattern) for value, pattern in zip(read, patterns, strict=True)]
    (row,) = written.select(F.array(*written.columns).alias("texts"), F.array(*shown).alias("shown")).collect()
    for pattern, text, again in zip(patterns, row["texts"], row["shown"], strict=True):
        has_time = isinstance(wanted, DateType) and not set("HhkKmsS").isdisjoint(pattern)
        assert again == (None if has_time else text), (pattern, text, again)


def _is_accepted(option: str, pattern: str) -> bool:
    try:
        check_options({option: pattern}, "csv")
    except InvalidPipeline:
        return False
    return True


def _pattern(draw: random.Random) -> str:
    days = draw.choice(
        ("yyyy-MM-dd", "d.M.y", "dd/MM/yy", "MMMM d, yyyy", "yyyyDDD", "G yyyy MM dd", "yyyy LL", "yyyy")
    )
    times = draw.choice(
        ("", "", " HH:mm", " h:mm:ss a", "'T'HHmmss", " kk:mm:ss.SSS", " K:mm a", "[ HH:mm:ss]", " mm", "hh:mm")
    )
    return days + times + draw.choice(("", "", "", ".SSSSSS", "XXX", " VV", " z", "xxx", "OOOO"))
