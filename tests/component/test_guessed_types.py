"""A type is guessed from its plain notation, and only if it represents every value exactly."""

import csv
import json
import random
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest

from lakehouse.source_files import find_files, preview_types
from sluice.input.plain_notation import notation_of
from sluice.pipeline.source import Source
from sluice.presentation.guessed_types import describe_types
from tests.harness.exact_texts import as_day, as_moment, texts
from tests.harness.ingester import Ingester, file
from tests.harness.seeds import new_seed

_SEED = new_seed()
_POOLS: dict[str, list[str]] = {
    "int": ["0", "-1", "7", "2147483647", "-2147483648"],
    "bigint": ["2147483648", "-9223372036854775808", "9223372036854775807"],
    "huge": ["9223372036854775808", "1" * 38, "-" + "9" * 38],
    "number": ["1.5", "0.1", "-2.50", "1234567.125", "0.30000000000000004"],
    "long number": ["9007199254740993", "0.12345678901234567", "12345678901234567.5", "3.14159265358979323846"],
    "almost": ["1E5", "12D", "7F", "00123", "+47", ".5", "5.", "0x10", "NaN", "Infinity", "1,5", "1_0", " 5", "e3f1"],
    "day": ["2024-01-05", "1969-12-31", "2000-02-29"],
    "moment": ["2024-01-05 10:30:00", "2024-01-05T10:30", "2024-01-05 10:30:00.123456", "2024-01-05 10:30:00Z"],
    "almost a moment": [
        "2024-01",
        "10:30",
        "2024-02-30",
        "2024-01-05 10:30:00.123456789",
        "20240105",
        "today",
        "2024-01-05 10:30:5Z",
        "2024-01-05 10:30:5 ",
    ],
    "boolean": ["true", "false", "TRUE", "False"],
    "text": ["x", "N/A", "été", "true or false", "a b", 'a "b"', "a;b|c\td", "two\nlines"],
    "none": [""],
}


def means_the_same(text: str, value: Any) -> bool:
    """Return True if a table's value is the one that the file's text states."""
    readings: tuple[tuple[type, Callable[[], object]], ...] = (
        (type(None), lambda: None if text == "" else text),
        (bool, lambda: {"true": True, "false": False}[text.lower()]),
        (datetime, lambda: as_moment(text, zone=True)),
        (date, lambda: as_day(text)),
        (float, lambda: Decimal(text)),
        (int, lambda: int(text)),
        (Decimal, lambda: Decimal(text)),
        (str, lambda: text),
    )
    read = next(read for kind, read in readings if isinstance(value, kind))
    held = Decimal(repr(value)) if isinstance(value, float) else value
    return bool(read() == (held.replace(tzinfo=None) if isinstance(held, datetime) else held))


@pytest.mark.parametrize("number", range(3))
def test_what_is_published_is_what_the_file_says(job: Ingester, number: int) -> None:
    """Columns of generated texts, without a schema: each value is the one that its text states."""
    draw = random.Random(f"{number} {_SEED}")
    print(f"seed {_SEED}")
    rows = 24
    pools = dict(_POOLS)
    for text in texts(draw):
        pools.setdefault(f"generated {notation_of(text)}", []).append(text)
    columns: dict[str, list[str]] = {"id": [str(each) for each in range(rows)]}
    for column in range(80):
        kinds = draw.sample(sorted(pools), draw.choice((1, 1, 2, 3)))
        columns[f"c{column}"] = [draw.choice([*pools[draw.choice(kinds)], ""]) for _ in range(rows)]
    lines = list(zip(*columns.values(), strict=True))
    separator = draw.choice(",;|\t")
    quoting: Literal[0, 1] = draw.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    for half, some in enumerate((lines[: rows // 2], lines[rows // 2 :])):
        with (job.folder / f"{half}.csv").open("w", newline="") as stream:
            writer = csv.writer(
                stream, delimiter=separator, quoting=quoting, lineterminator=draw.choice(("\n", "\r\n"))
            )
            writer.writerows([list(columns), *some])
    source = Source(path=f"{job.folder}/*.csv", options={"sep": separator})
    answer = job(source.model_dump(exclude_defaults=True))
    previewed = preview_types(source, find_files(source)).columns
    types = {each.name: each.type for each in previewed}
    assert answer.types.total == len(columns)
    other = [each for each in answer.types.columns if each.type != types[each.name]]
    assert not other, [("`check` says otherwise", each, types[each.name], columns[each.name]) for each in other]
    wrong = []
    for line, row in enumerate(job.rows()):
        for name, given in columns.items():
            if name in row and not means_the_same(given[line], row[name]):
                wrong.append((name, given, row[name]))
            elif name not in row:
                assert not any(given), f"{name} was left out"
    assert not wrong, wrong[:5]


def test_a_type_has_a_plain_notation(job: Ingester) -> None:
    """Each column has texts of one kind."""
    cases: list[tuple[list[str], type]] = [
        (["12D", "7F"], str),
        (["1E5", "2E7"], str),
        (["10:30", "11:30"], str),
        (["2024-01", "2024-02"], str),
        (["9007199254740993", "1.5"], Decimal),
        (["0.1", "2"], float),
        (["1.50", "2.5"], float),
        (["1", "2"], int),
        (["2024-01-05", "2024-01-06"], date),
        (["2024-01-05", "2024-01-05 10:00:00"], datetime),
        (["true", "FALSE"], bool),
        (["00123", "7"], str),
    ]
    header = ",".join(["id", *(f"x{number}" for number in range(len(cases)))])
    lines = [",".join([str(number), *(texts[number] for texts, _ in cases)]) for number in range(2)]
    job({"path": file(job, "in.csv", "\n".join([header, *lines, ""]))})
    rows = job.rows()
    for number, (given, kind) in enumerate(cases):
        values = [row[f"x{number}"] for row in rows]
        assert [type(value) for value in values] == [kind, kind], given
        assert kind is not str or values == given
        assert kind is not Decimal or values == [Decimal(text) for text in given]


def test_the_answer_says_which_value_decided(job: Ingester) -> None:
    lines = ["id,seat,amount,name,note", "1,12D,1.5,Ada,", "2,7F,2,Bo,", "3,8A,n/a,Cy,"]
    path = file(job, "in.csv", "\n".join([*lines, ""]))
    assert [(each.name, each.type, each.value, each.where) for each in job({"path": path}).types.columns] == [
        ("id", "INT", "", ""),
        ("seat", "STRING", "", "in.csv"),
        ("amount", "STRING", "", "in.csv"),
        ("name", "STRING", "", ""),
        ("note", "", "", ""),
    ]
    assert [each.name for each in job({"path": path}).types.columns] == ["note"], "the table states the other types"


def test_the_answer_shows_values_where_the_pipeline_says_so(job: Ingester) -> None:
    path = file(job, "in.csv", "id,amount\n1,1.5\n2,n/a\n")
    answer = job({"path": path}, show_values=True)
    assert describe_types(answer.types) == "id INT, amount STRING ('n/a' in in.csv)"


def test_the_answer_says_what_json_gives(job: Ingester) -> None:
    path = file(job, "in.jsonl", '{"id":1,"tags":["a"],"note":null}\n')
    assert describe_types(job({"path": path}).types) == (
        "id BIGINT, tags ARRAY<string>; no value yet, so left out: note"
    )


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_column_without_values_has_no_type_yet(job: Ingester, format: str) -> None:
    """A new table lacks the column. The first file with a value adds the column, in the type of its values."""

    def load(number: int, *values: float | None) -> None:
        rows = [{"id": 10 * number + each, "x": value} for each, value in enumerate(values)]
        lines = [f"{row['id']},{'' if row['x'] is None else row['x']}" for row in rows]
        text = "\n".join(["id,x", *lines, ""]) if format == "csv" else "".join(json.dumps(row) + "\n" for row in rows)
        job({"path": file(job, f"{number}.{format}", text)})

    load(1, None, None)
    assert job.rows() == [{"id": 10}, {"id": 11}]
    load(2, None)
    assert job.rows() == [{"id": 10}, {"id": 11}, {"id": 20}]
    load(3, 0.5, None)
    load(4, None, 2.0)
    assert [row["x"] for row in job.rows()] == [None, None, None, 0.5, None, None, 2.0]


def test_a_transform_does_not_make_text_of_a_column_without_values(job: Ingester) -> None:
    for number, value in enumerate(("", "0")):
        path = file(job, f"{number}.csv", f"id,x\n{number},{value}\n")
        job({"path": path}, transform="SELECT * FROM source")
    assert [row.get("x") for row in job.rows()] == [None, 0]


def test_a_number_of_json_with_more_digits_than_a_double_has_is_refused(job: Ingester) -> None:
    path = file(job, "in.jsonl", '{"id": 1, "x": 0.5}\n{"id": 2, "x": 0.12345678901234567890}\n')
    refused = job.refused({"path": path})
    assert f"{path}: x: '0.12345678901234567890' cannot be stored exactly as a double" in refused, refused


def test_many_columns_are_guessed_and_converted_at_once(job: Ingester) -> None:
    """The values of all columns of one type are converted in one array."""
    names = [f"x{number}" for number in range(30)] + [f"d{number}" for number in range(30)]
    good = ["1.5"] * 30 + ["2024-01-05"] * 30
    first = file(job, "a.csv", "\n".join([",".join(["id", *names]), ",".join(["1", *good]), ""]))
    job({"path": first})
    assert job.rows() == [{"id": 1, **dict.fromkeys(names[:30], 1.5), **dict.fromkeys(names[30:], date(2024, 1, 5))}]
    bad = file(job, "b.csv", "\n".join([",".join(["id", *names]), ",".join(["2", *good[:-1], "2024-01"]), ""]))
    assert f"{bad}: d29: '2024-01' is not a valid date; 1 such row" in job.refused({"path": bad})


_FORMAT = {"timestampFormat": "dd.MM.yyyy HH:mm:ss"}


@pytest.mark.parametrize(
    ("files", "options", "kind"),
    [
        (["id,t,n\n1,31.01.2026 10:00:00,x\n", 'id,t,n\n2,,"x\ny"\n'], _FORMAT, datetime),
        (['id,t,n\r\n2,,"x\ny"\r\n', "id,t,n\n1,31.01.2026 10:00:00,x\n"], _FORMAT, datetime),
        (["id,t,n\n1,31.01.2026 10:00:00,x\n", "id,t,n"], {**_FORMAT, "multiLine": "true"}, datetime),
        (["id,t,n\n1,31.01.2026 10:00:00,x\n", 'id,t,n\n2,-,"x\ny"\n'], _FORMAT, str),
        (
            ["id,t,n\n1,31.01.2026 10:00:00,x\n", 'id,t,n\n2,-,"x\ny"\n'],
            {**_FORMAT, "nullValue": "-"},
            datetime,
        ),
        (
            ["id,t,n\n1,2026-01-31 10:00:00,x\n", 'id,t,n\n2,2026-01-31,"x\ny"\n'],
            {"dateFormat": "yyyy-MM-dd"},
            datetime,
        ),
    ],
)
def test_times_in_files_that_are_read_apart(
    job: Ingester, files: list[str], options: dict[str, str], kind: type
) -> None:
    paths = [file(job, f"{number}.csv", text) for number, text in enumerate(files)]
    job({"path": paths, "options": options})
    assert {type(value) for row in job.rows() if (value := row["t"]) is not None} == {kind}
