"""The command `generate`: the file that it writes, its name and bytes, and its refusals."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import json as arrow_json
from pyarrow import orc, parquet
from typer.testing import CliRunner

from cli.app import app
from lakehouse.source_files import read_column_names, write_rows
from lakehouse.source_files.identify import find_files
from runtime.pipeline.source_sample import sample_source
from sluice.pipeline.source import Source

PIPELINE = """
name: orders
write:
  source: {{path: "landing/*.{suffix}", schema: "id INT, s STRING, amount DECIMAL(9, 2), at TIMESTAMP"{more}}}
tables:
  shop.orders:
    checks: [not_null: id, unique: id, not_empty_string: s]
"""


def pipeline_file(folder: Path, suffix: str = "csv", more: str = "") -> str:
    (folder / "orders.yml").write_text(PIPELINE.format(suffix=suffix, more=more))
    return str(folder / "orders.yml")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["generate", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_same_arguments_write_the_same_bytes_and_nothing_else(tmp_path: Path) -> None:
    file, written = pipeline_file(tmp_path), []
    for folder in ("one", "two"):
        faults = ("--fault", "not_null:id=0.1", "--fault", "not_empty_string:s=0.2")
        code, out, err = run(file, "-n", "50", *faults, "--to", str(tmp_path / folder), "--json")
        assert code == 0 and "not_null:id: 5 of 50 rows" in err
        assert [str(each) for each in (tmp_path / folder).iterdir()] == [json.loads(out)["file"]]
        written.append(Path(json.loads(out)["file"]))
    assert written[0].name == written[1].name and written[0].name.startswith("orders-seed7-50-")
    assert written[0].read_bytes() == written[1].read_bytes()
    lines = written[0].read_text().splitlines()
    assert lines[0] == "id,s,amount,at" and len(lines) == 51
    assert sum(line.startswith(",") for line in lines) == 5 and sum(',"",' in line for line in lines) == 10
    source = Source(path=str(written[0]))
    assert read_column_names(source, find_files(source)) == ["id", "s", "amount", "at"]


def test_a_file_with_a_placeholder_is_given_its_value(tmp_path: Path) -> None:
    file = Path(pipeline_file(tmp_path))
    file.write_text(file.read_text().replace(".csv", "-{{ partition }}.csv"))
    assert "{{ partition }}" in file.read_text()
    asked = (str(file), "-n", "5", "--to", str(tmp_path / "made"))
    assert run(*asked)[0] == 2 and not (tmp_path / "made").exists()
    for month in ("2018-01", "2018-01", "2018-02"):
        assert run(*asked, "--partition", month)[0] == 0
    assert len(list((tmp_path / "made").iterdir())) == 2


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    """A landing zone would see another file of the same name."""
    asked = (pipeline_file(tmp_path), "-n", "5", "--to", str(tmp_path / "made"))
    assert run(*asked)[0] == 0
    (file,) = (tmp_path / "made").iterdir()
    file.write_text("of somebody else")
    code, _, err = run(*asked)
    assert code == 2 and f"{file} exists already with other rows: give another --seed or --to" in err
    assert [each.read_text() for each in (tmp_path / "made").iterdir()] == ["of somebody else"]


@pytest.mark.parametrize("suffix", ["parquet", "orc", "json"])
def test_the_format_is_that_of_the_source(tmp_path: Path, suffix: str) -> None:
    code, out, _ = run(pipeline_file(tmp_path, suffix), "-n", "30", "--no-null", "--to", str(tmp_path), "--json")
    path = json.loads(out)["file"]
    readers = {"parquet": parquet.read_table, "orc": orc.read_table, "json": arrow_json.read_json}
    table = readers[suffix](path)
    assert (code, table.num_rows, table.column_names) == (0, 30, ["id", "s", "amount", "at"])
    assert sum(column.null_count for column in table.columns) == 0


def test_csv_is_written_as_the_options_of_the_reader_say(tmp_path: Path) -> None:
    options = ', options: {sep: ";", nullValue: NA, header: "false"}'
    code, out, _ = run(pipeline_file(tmp_path, more=options), "-n", "40", "--to", str(tmp_path), "--json")
    lines = Path(json.loads(out)["file"]).read_text().splitlines()
    assert code == 0 and len(lines) == 40 and all(line.count(";") == 3 for line in lines)
    assert sum(line.endswith(";NA") for line in lines) == 2


def test_without_a_pipeline_and_with_a_description(tmp_path: Path) -> None:
    code, out, _ = run("-n", "3", "--seed", "1", "--to", str(tmp_path), "--verbose")
    assert code == 0 and [line.split()[:2] for line in out.splitlines()[1:4]] == [
        ["my_col_0", "int"],
        ["my_col_1", "string"],
        ["my_col_2", "double"],
    ]
    assert parquet.read_table(tmp_path / "rows-seed1-3.parquet").num_rows == 3


@pytest.mark.parametrize(
    ("path", "suffix"),
    [
        ("s3://source/orders/*.parquet", "parquet"),
        ("s3://source/orders/", "parquet"),
        ("landing/*.csv", "csv"),
        ("landing/orders.jsonl", "json"),
    ],
)
def test_without_a_pipeline_the_format_is_that_of_s3_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, suffix: str
) -> None:
    """The loader with these variables will read it in this format."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"TABLE_NAME=orders\nNAMESPACE=shop\nS3_PATH={path}\n")
    code, out, _ = run("-n", "3", "--json")
    assert (code, Path(json.loads(out)["file"]).name) == (0, f"rows-seed7-3.{suffix}")


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        (["--fault", "not_nul:id=0.1"], "", "there is no check 'not_nul:id' (did you mean 'not_null:id'?)"),
        (["--to", "s3://bucket/landing"], "", "writes only into local folders"),
        ([], ", options: {timestampFormat: yyyy}", "cannot write files for the reader option timestampFormat"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_no_file(
    tmp_path: Path, arguments: list[str], more: str, message: str
) -> None:
    file, folder = pipeline_file(tmp_path, more=more), tmp_path / "landing"
    code, _, err = run(file, "--to", str(folder), *arguments)
    assert code == 2 and message in err and len(err.splitlines()) == 1
    assert not folder.exists() or not list(folder.iterdir())


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_values_are_those_of_the_source(tmp_path: Path, suffix: str) -> None:
    """They are as frequent as in the source, if the checks accept them. Keys are new."""
    cuts, carats = ["Ideal", "Ideal", "Ideal", "Good"], [0.23, 0.31, -7.0, 0.7]
    rows = [{"id": number, "cut": cuts[number % 4], "carat": carats[number % 4]} for number in range(40)]
    (tmp_path / "landing").mkdir()
    write_rows(
        tmp_path / "landing" / f"in.{suffix}",
        rows,
        {"id": "int", "cut": "string", "carat": "double"},
        Source(path=f"x.{suffix}"),
    )
    file = tmp_path / "p.yml"
    file.write_text(
        f"name: p\nwrite: {{source: {{path: '{tmp_path}/landing/*.{suffix}', "
        "schema: 'id INT, cut STRING, carat DOUBLE'}}\n"
        "tables: {t.p: {checks: [unique: id, accepted_range: {column: carat, min: 0}, not_null: [id, cut, carat]]}}\n"
    )
    code, out, err = run(str(file), "-n", "200", "--to", str(tmp_path / "made"), "--json")
    assert code == 0, err
    written = json.loads(out)["file"]
    made = sample_source(Source(path=written))
    assert Counter(str(row["cut"]) for row in made)["Ideal"] > 100
    assert {str(row["cut"]) for row in made} == {"Ideal", "Good"}
    assert {float(row["carat"]) for row in made} == {0.23, 0.31, 0.7}
    assert len({int(row["id"]) for row in made} - {row["id"] for row in rows}) == 200


def test_a_broken_source_gives_no_values(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"id\n\xff\xfe\n")
    (tmp_path / "in.parquet").write_bytes(b"PAR1 no PAR1")
    assert (
        sample_source(Source(path=f"{tmp_path}/in.csv")) == sample_source(Source(path=f"{tmp_path}/in.parquet")) == []
    )
