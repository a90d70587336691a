"""Columns that a pipeline names are compared with the header, the schema or Parquet's footer before anything starts."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.app import app
from lakehouse.source_files import find_files, preview_types, read_column_names
from runtime.pipeline.pipeline_input import find_input, inspect_input, load_pipeline
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.source import Source

PIPELINE = """\
name: orders
write:
  source: {path: FILE}
  mode: merge
  keys: [id, orderid]
tables:
  t.orders:
    partition_by: [month(orderd_on)]
    sort_by: [amount desc, town]
    comments: {note: A note}
    checks:
      - not_null: [id, ammount]
      - accepted_range: {column: amount, min: 0, where: "cuntry = 'DE'"}
      - column_exists: vat
"""
HEADER = "id,ordered_on,amount,country\n"


def columns(path: Path, **source: Any) -> list[str] | None:
    given = Source.model_validate({"path": str(path), **source})
    return read_column_names(given, find_files(given))


def test_the_header_of_a_csv_file(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b'\xef\xbb\xbf\r\nid,"the, ""town""",Amount\r\n1,x,2\r\n')
    assert columns(file) == ["id", 'the, "town"', "Amount"]
    file.write_text("id;town\n1;x\n", encoding="utf-16-le")
    assert columns(file, options={"sep": ";", "encoding": "UTF-16LE"}) == ["id", "town"]
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(b"id\ttown\n1\tx\n"))
    assert columns(packed, options={"sep": "\\t"}) == ["id", "town"]


def test_what_is_not_known_before_spark_reads_it(tmp_path: Path) -> None:
    for name, text, options in (
        ("a.csv", "1,2\n", {"header": "false"}),
        ("b.csv", '"a\nb",c\n1,2\n', {}),
        ("c.csv", "a||b\n", {"sep": "||"}),
        ("d.json", '{"id": 1}\n', {}),
    ):
        (tmp_path / name).write_text(text)
        assert columns(tmp_path / name, options=options) is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id, name\n1, a\n", {"ignoreLeadingWhiteSpace": "true"}),
        ("id,name|1,a|", {"lineSep": "|"}),
        ('"a \\"q\\", b",id\n1,2\n', {"escape": "\\"}),
        ("id,name\n", {"basePath": "file:///x"}),
        ("i" * 200_000 + "\n", {}),
        ("i" * 3_000_000, {}),
        ("id\n", {"encoding": "UTF-16"}),
    ],
)
def test_a_header_that_spark_may_read_in_another_way(tmp_path: Path, text: str, options: dict[str, str]) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert columns(tmp_path / "a.csv", options=options) is None


def test_files_with_other_columns_each(tmp_path: Path) -> None:
    """Parquet files may differ. CSV files may differ if they are left out because they were loaded before."""
    for number in range(12):
        (tmp_path / f"{number:03}.csv").write_text("id\n1\n" if number < 9 else "id,vat\n1,2\n")
    assert columns(tmp_path / "*.csv") == ["id", "vat"]
    for number in range(12, 70):
        (tmp_path / f"{number:03}.csv").write_text("id\n1\n")
    assert columns(tmp_path / "*.csv") is None


def test_folders_that_spark_may_make_columns_of(tmp_path: Path) -> None:
    folder = tmp_path / "in" / "a%3Ab=1"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("id\n1\n")
    assert columns(tmp_path / "in", format="csv") == ["id", "a:b"]
    assert columns(tmp_path / "*", format="csv") is None


def test_a_pipeline_file_that_is_gone_when_its_lines_are_asked_for(tmp_path: Path) -> None:
    file = orders(tmp_path)
    pipeline = load_pipeline(file, {}, tmp_path)
    file.unlink()
    with pytest.raises(InvalidPipeline, match="keys: the input has no column 'orderid'"):
        find_input(pipeline, file)


def test_a_stated_schema_and_folders(tmp_path: Path) -> None:
    (tmp_path / "day=2026-01-01").mkdir()
    (tmp_path / "day=2026-01-01" / "a.csv").write_text("1,2\n")
    schema = "id BIGINT NOT NULL, `a b` STRUCT<x: INT, y: STRING> COMMENT 'c', amount DECIMAL(10,2)"
    assert columns(tmp_path, schema=schema, format="csv") == ["id", "a b", "amount", "day"]


def test_the_footer_of_a_parquet_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "s": [{"x": 1}]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1], "later": [2]}), tmp_path / "b.parquet")
    assert columns(tmp_path / "*.parquet") == ["id", "s", "later"]


def orders(folder: Path, text: str = PIPELINE, content: str = HEADER + "1,2026-01-01,2,DE\n") -> Path:
    (folder / "orders.csv").write_text(content)
    file = folder / "orders.yml"
    file.write_text(text.replace("FILE", str(folder / "orders.csv")))
    return file


def test_every_column_that_is_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    file = orders(tmp_path)
    pipeline = load_pipeline(file, {}, tmp_path)
    with pytest.raises(InvalidPipeline) as refused:
        find_input(pipeline, file)
    lines = str(refused.value).replace(str(tmp_path) + "/", "").splitlines()
    assert lines == [
        "orders.yml:12: not_null: t.orders: the input has no column 'ammount' (did you mean 'amount'?)",
        "orders.yml:13: accepted_range: t.orders: the input has no column 'cuntry' (did you mean 'country'?)",
        "orders.yml:5: keys: the input has no column 'orderid' (did you mean 'ordered_on'?)",
        "orders.yml:8: partition_by: the input has no column 'orderd_on' (did you mean 'ordered_on'?)",
        "orders.yml:9: sort_by: the input has no column 'town'",
        "orders.yml:10: comments: the input has no column 'note'",
    ]


def test_capital_letters_make_no_difference_as_in_spark(tmp_path: Path) -> None:
    text = "name: p\nwrite: {source: {path: FILE}}\ntables: {t.x: {checks: [not_null: id]}}\n"
    file = orders(tmp_path, text, "ID\n1\n")
    assert find_input(load_pipeline(file, {}, tmp_path), file).files == 1


@pytest.mark.parametrize("write", ["transform: SELECT id AS town FROM source", "job: FOLDER/job.py"])
def test_what_a_transform_or_a_program_makes_of_the_input_is_not_known(tmp_path: Path, write: str) -> None:
    (tmp_path / "job.py").write_text("")
    write = write.replace("FOLDER", str(tmp_path))
    text = f"name: p\nwrite: {{source: {{path: FILE}}, {write}}}\ntables: {{t.x: {{checks: [not_null: town]}}}}\n"
    file = orders(tmp_path, text, "id\n1\n")
    assert find_input(load_pipeline(file, {}, tmp_path), file).files == 1


VALUES = """\
name: p
write: {source: {path: FILE}TRANSFORM}
tables:
  t.x:
    checks:
      - accepted_values: {column: code, values: [1, 2]}
      - accepted_range: {column: day, min: 5}
      - accepted_values: {column: id, values: [1, 2]}
      - not_null: later
"""


def test_a_check_whose_values_do_not_fit_a_guessed_type_has_a_hint_before_the_run(tmp_path: Path) -> None:
    content = "id,code,day,later\n1,A1,2026-01-01,\n2,B2,2026-01-02,\n"
    file = orders(tmp_path, VALUES.replace("TRANSFORM", ""), content)
    inspected = inspect_input(load_pipeline(file, {}, tmp_path), file)
    assert [hint.removeprefix(f"{tmp_path}/") for hint in inspected.hints] == [
        "orders.yml:6: accepted_values: 'code' is string: 1 is not a text: write it in quotes (types guessed, used if "
        "the table is new)",
        "orders.yml:7: accepted_range: 'day' is date: 5 is not a date such as 2024-01-31 (types guessed, used if the "
        "table is new)",
    ]
    orders(tmp_path, VALUES.replace("TRANSFORM", ', transform: "SELECT *, 1 AS one FROM source"'), content)
    assert inspect_input(load_pipeline(file, {}, tmp_path), file).hints == []


def test_a_check_whose_values_do_not_fit_a_stated_type_has_a_hint_before_the_run(tmp_path: Path) -> None:
    schema = "id INT, code DECIMAL(10, 2) NOT NULL, day DATE, later STRING COLLATE UTF8_BINARY, at TIMESTAMP"
    text = VALUES.replace("FILE}TRANSFORM", f'FILE, schema: "{schema}"}}').replace("[1, 2]}", "[new, 2]}", 1)
    text += "      - accepted_range: {column: later, min: 5}\n      - not_nan: at\n"
    text += '      - accepted_range: {column: at, min: "2026-01-01 00:00:00+00:00"}\n'
    file = orders(tmp_path, text, "id,code,day,later,at\n1,2.50,2026-01-01,,\n")
    inspected = inspect_input(load_pipeline(file, {}, tmp_path), file)
    where = "(types of `schema`, used if the table is new)"
    assert [hint.removeprefix(f"{tmp_path}/") for hint in inspected.hints] == [
        f"orders.yml:6: accepted_values: 'code' is decimal(10, 2): 'new' is not a decimal number {where}",
        f"orders.yml:7: accepted_range: 'day' is date: 5 is not a date such as 2024-01-31 {where}",
        f"orders.yml:10: accepted_range: 'later' is string: 5 is not a text: write it in quotes {where}",
        f"orders.yml:11: not_nan: 'at' is timestamptz, and this check is for float or double {where}",
    ]
    file = orders(tmp_path, text.replace("column: day", "column: days"), "id,code,day,later,at\n")
    with pytest.raises(InvalidPipeline, match=r"orders.yml:7: .* no column 'days' \(did you mean 'day'\?\)"):
        inspect_input(load_pipeline(file, {}, tmp_path), file)


def test_a_guessed_time_has_a_zone_in_the_table(tmp_path: Path) -> None:
    text = VALUES.replace("TRANSFORM", "").replace("column: day, min: 5", 'column: day, min: "2026-01-01 00:00:00Z"')
    text = text.replace("code, values: [1, 2]", "code, values: [A1]")
    file = orders(tmp_path, text, "id,code,day,later\n1,A1,2026-01-01 10:00,\n")
    assert inspect_input(load_pipeline(file, {}, tmp_path), file).hints == []


def test_check_says_what_is_valid_and_what_is_not(tmp_path: Path) -> None:
    good = PIPELINE.replace("orderid", "country").replace("orderd_on", "ordered_on").replace("ammount", "amount")
    good = good.replace("cuntry", "country").replace("town", "id").replace("note: A", "id: A")
    file = orders(tmp_path, good)
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "orders is valid: 4 checks of t.orders.",
        f"Its source has 1 file, {len(HEADER) + 18} bytes.",
        "Columns: id, ordered_on, amount, country.",
        "Types guessed from all rows, used if the table is new: id INT, ordered_on DATE, amount INT, country STRING.",
    ]
    fields = json.loads(CliRunner().invoke(app, ["check", str(file), "--json"]).output)
    assert fields["valid"] and fields["columns"] == ["id", "ordered_on", "amount", "country"]
    orders(tmp_path)
    wrong = CliRunner().invoke(app, ["check", str(file)])
    assert wrong.exit_code == 2 and "orders.yml:12: not_null" in wrong.output
    (tmp_path / "orders.csv").unlink()
    missing = CliRunner().invoke(app, ["check", str(file)])
    assert missing.exit_code == 2 and "orders.yml:3: there are no files at" in missing.output


def hints(folder: Path, content: str, **source: Any) -> list[str]:
    (folder / "in.csv").write_text(content)
    stated = Source(path=str(folder / "in.csv"), format="csv", **source)
    return [each.replace(f"{folder}/", "") for each in preview_types(stated, find_files(stated)).hints]


NUMBERS = "".join(f"{number},{number}.5,word{number}\n" for number in range(100))


def test_a_column_that_a_few_values_make_text_is_named_with_the_first_of_them(tmp_path: Path) -> None:
    text = f"id,amount,note\n{NUMBERS}100,twelve,x\n101,,x\n"
    assert hints(tmp_path, text) == [
        "amount is read as text because of 'twelve' in in.csv, line 102: 100 of the first 101 values are numbers. "
        "Repair the file, or state `schema`"
    ]


@pytest.mark.parametrize("wrong", ["31.11.2026", "2026-11-31", "soon"])
def test_a_column_of_dates_with_one_that_is_none(tmp_path: Path, wrong: str) -> None:
    dates = [f"2026-11-{number:02}" for number in range(1, 30)]
    times = [f"{date}T10:00:00Z" for date in dates[:-1]]
    days = "".join(
        f"{day},{time}\n" for day, time in zip([*dates[:5], wrong, *dates[5:]], [*times, "", ""], strict=True)
    )
    assert hints(tmp_path, f"day,at\n{days}") == [
        f"day is read as text because of '{wrong}' in in.csv, line 7: 29 of the first 30 values are dates. "
        "Repair the file, or state `schema`"
    ]


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (f"id,amount,note\n{NUMBERS}", {}),
        (f"id,amount,note\n{NUMBERS}1,NA,x\n", {"options": {"nullValue": "NA"}}),
        (f"id,amount,note\n{NUMBERS}1,x,x\n", {"schema": "id INT, amount STRING, note STRING"}),
        (f"id,amount,note\n{NUMBERS}1,x,x\n", {"options": {"inferSchema": "false"}}),
        (f"id,amount,note\n{NUMBERS}" + "1,x,x\n" * 10, {}),
        ("id,amount\n1,1\n2,x\n", {}),
        ("", {}),
    ],
)
def test_columns_of_which_nothing_is_said(tmp_path: Path, content: str, source: dict[str, Any]) -> None:
    if content:
        assert hints(tmp_path, content, **source) == []
        return
    with pytest.raises(InvalidInput):
        hints(tmp_path, content, **source)


def test_values_with_line_breaks_count_their_lines(tmp_path: Path) -> None:
    text = 'id,note\n"1","a\nb"\n' + "".join(f"{n},x\n" for n in range(50)) + "odd,x\n"
    assert "because of 'odd' in in.csv, line 54" in hints(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,name,\n1,a,\n", ["column 3 (after 'name') has no name"]),
        ("1,2\n3,4\n", ["is read as the header, although it has only numbers"]),
        (" id,name \n1,a\n", ["the column name ' id' in the header has spaces"]),
        ("id,name\n1,a\n", []),
    ],
)
def test_a_check_says_what_a_run_would_refuse_or_mistake(tmp_path: Path, content: str, words: list[str]) -> None:
    file = orders(tmp_path, "name: orders\nwrite:\n  source: {path: FILE}\ntables: [t.orders]\n", content)
    hints = inspect_input(load_pipeline(file, {}, tmp_path), file).hints
    assert len(hints) == len(words) and all(word in hint for word, hint in zip(words, hints, strict=True))


def test_the_hint_is_part_of_a_check(tmp_path: Path) -> None:
    text = "name: orders\nwrite:\n  source: {path: FILE}\ntables: [t.orders]\n"
    file = orders(tmp_path, text, HEADER + "1,2026-01-01,2,DE\n" * 40 + "1,2026-01-01,many,DE\n")
    inspected = inspect_input(load_pipeline(file, {}, tmp_path), file)
    assert "because of 'many' in " in inspected.hints[0] and ", line 42: " in inspected.hints[0]


SQL_PIPELINE = """\
name: orders
write:
  source: {path: FILE}
TRANSFORM
tables:
  t.orders:
    checks:
      - not_null: [id, gross]
      - sql: SELECT o.id, totl FROM t.orders o JOIN t.towns USING (town) WHERE o.contry = 'DE'
      - sql: SELECT id FROM t.orders WHERE _file IS NULL GROUP BY id HAVING count(*) > 1 AND max(grss) > 2
"""


def check_sql_pipeline(tmp_path: Path, transform: str, *, name: str = "a.csv", text: str = HEADER) -> str:
    """Return the message of `inspect_input` about a pipeline with queries."""
    (tmp_path / name).write_text(text)
    pipeline = tmp_path / "p.yaml"
    given = f"  transform: {transform}" if transform else ""
    pipeline.write_text(SQL_PIPELINE.replace("FILE", str(tmp_path / name)).replace("TRANSFORM", given))
    with pytest.raises(InvalidPipeline) as caught:
        inspect_input(load_pipeline(pipeline, {}, tmp_path), pipeline)
    return str(caught.value).replace(str(tmp_path) + "/", "")


def test_columns_of_queries_are_held_against_the_header(tmp_path: Path) -> None:
    """A column without a table name may belong to a table that is not known yet."""
    assert check_sql_pipeline(tmp_path, "").splitlines() == [
        "p.yaml:8: not_null: t.orders: the input has no column 'gross'",
        "p.yaml:9: sql: t.orders: the input has no column 'contry' (did you mean 'country'?)",
        "p.yaml:10: sql: t.orders: the input has no column 'grss'",
    ]


def test_columns_of_a_transform_are_held_against_the_header(tmp_path: Path) -> None:
    message = check_sql_pipeline(tmp_path, "SELECT *, amonut * 1.2 AS gross FROM source")
    assert message.splitlines() == [
        "p.yaml:9: sql: t.orders: the transform returns no column 'contry' (did you mean 'country'?)",
        "p.yaml:10: sql: t.orders: the transform returns no column 'grss' (did you mean 'gross'?)",
        "p.yaml:4: transform: the input has no column 'amonut' (did you mean 'amount'?)",
    ]


def test_a_transform_tells_the_columns_of_an_input_that_is_not_known(tmp_path: Path) -> None:
    transform = "SELECT id, amount AS gros FROM source"
    first, *_ = check_sql_pipeline(tmp_path, transform, name="a.jsonl", text='{"id": 1}\n').splitlines()
    assert first == "p.yaml:8: not_null: t.orders: the transform returns no column 'gross' (did you mean 'gros'?)"


def test_check_accepts_a_landing_zone_in_which_no_file_has_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "p.yml"
    text = "name: p\nwrite: {source: {format: csv}}\ntables: {t.p: {checks: [not_null: [id]]}}\narrival: {from: in}\n"
    file.write_text(text)
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 0, done.output
    hint = f"hint: no file has arrived in {tmp_path}/in yet: after `deploy`, the landing zone loads arriving files"
    assert hint in done.output
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("number\n1\n")
    wrong = CliRunner().invoke(app, ["check", str(file)])
    assert wrong.exit_code == 2, "the file that is there has another column"
