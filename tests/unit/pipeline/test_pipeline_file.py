"""Pipeline files: valid content, and messages about mistakes."""

from pathlib import Path

import pytest

from devstack.stack import ROOT
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline, read_pipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.source import Source
from sluice.pipeline.table_layout import partition_parts

GOOD = """\
name: cities
write:
  source: {path: in/*.csv}
tables:
  geo.cities:
    checks:
      - not_null: [id, name]
"""


_QUARANTINING = "{on_bad_rows: quarantine, max_bad_rows: 1}"


def mistakes(text: str) -> str:
    with pytest.raises(InvalidPipeline) as raised:
        parse_pipeline(text, "p.yml")
    return str(raised.value)


def test_the_least_that_a_file_says() -> None:
    pipeline = parse_pipeline(GOOD, "p.yml")
    assert pipeline.write.mode == "append" and pipeline.approval is None and pipeline.on_failure == "quarantine"
    assert [check.column_names for check in pipeline.tables["geo.cities"].checks] == [["id"], ["name"]]
    assert Pipeline.model_validate_json(pipeline.model_dump_json(by_alias=True)) == pipeline


@pytest.mark.parametrize("file", sorted((ROOT / "pipelines").glob("*.yml")), ids=lambda file: file.stem)
def test_the_examples_are_valid(file: Path) -> None:
    assert read_pipeline(file).tables


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("write:", "wirte:", "p.yml:2: unknown key 'wirte' (did you mean 'write'?)"),
        ("path:", "pth:", "p.yml:3: unknown key 'pth' (did you mean 'path'?)"),
        ("path:", "mode: append, path:", "p.yml:3: unknown key 'mode' (it belongs under `write`); valid keys: path,"),
        ("name: cities\n", "name: cities\nchecks: []\n", "unknown key 'checks' (it belongs under `tables.TABLE`)"),
        ("name: cities\n", "name: cities\ntimeout: 1h\n", "(it belongs under `write` or under `approval`)"),
        (
            "name: cities\n",
            "name: cities\nunique: a\n",
            "unknown key 'unique' (list checks under `tables.TABLE.checks`)",
        ),
        (
            "name: cities\n",
            "name: cities\npublish: {on_failure: discard}\n",
            "(it belongs at the top level or under `arrival`)",
        ),
        (
            "{path: in/*.csv}",
            "{path: in.csv}\n  schema: id INT",
            "unknown key 'schema' (it belongs under `write.source`)",
        ),
        ("{path: in/*.csv}", "in/*.csv", "p.yml:3: write.source: 'in/*.csv' is not a mapping: write {path: in/*.csv}"),
        ("not_null:", "not_nul:", "p.yml:7: there is no check 'not_nul' (did you mean 'not_null'?)"),
        ("not_null: [id, name]", "[not_null]", "p.yml:7: a check is written as one name and its parameters"),
        ("[id, name]", "{column: id, sevrity: warn}", "p.yml:7: unknown key 'sevrity' (did you mean 'severity'?)"),
        (
            "not_null: [id, name]",
            "row_count: {exact: 3}",
            "unknown key 'exact'; valid keys: min, max, where, severity, scope",
        ),
        ("[id, name]", "{column: id, severity: loud}", "input should be 'fail' or 'warn', not 'loud'"),
        ("[id, name]", "{column: id, severity: fial}", "not 'fial' (did you mean 'fail'?)"),
        ("not_null: [id, name]", "row_count: {min: 3, max: 1}", "p.yml:7: "),
        ("not_null: [id, name]", "row_count: {}", "give min, max or both"),
        ("not_null: [id, name]", "accepted_range: {column: id, min: 3, max: 1}", "min 3 is above max 1"),
        (
            "not_null: [id, name]",
            "accepted_values: {column: id}",
            "'values' is missing; valid keys: column, columns, values, all",
        ),
        ("geo.cities", "cities", "p.yml:5: tables.cities: 'cities' is not a table name"),
        ("geo.cities", '"geo.ci ties"', "is not a table name"),
        ("name: cities", "name: ../cities", "p.yml:1: name: '../cities' is not a pipeline name"),
        ("name: cities\n", "", "p.yml:1: 'name' is missing; valid keys: name, description, branch, write"),
        ("name: cities\n", "name: cities\nname: towns\n", "p.yml:2: the key `name` occurs twice in one mapping"),
        ("write:", "write: [", "this is not valid YAML"),
        ("{path: in/*.csv}", "{path: []}", "the path is empty"),
        ("{path: in/*.csv}", "{path: a.csv, options: {mode: DROPMALFORMED}}", "bad rows would be dropped or blanked"),
        ("{path: in/*.csv}", "{path: a.csv, options: {ignoreCorruptFiles: true}}", "a broken file would be left out"),
        ("{path: in/*.csv}", "{path: a.csv, options: {comment: '#'}}", "a row that begins with this character"),
        ("{path: in/*.csv}", "{path: a.csv, options: {pathGlobFilter: b*}}", "files would be left out"),
        (
            "{path: in/*.csv}",
            "{path: a.csv, options: {modifiedafter: '2026-01-01'}}",
            "left out by a time",
        ),
        ("{path: in/*.csv}", "{path: a.csv, options: {recursiveFileLookup: true}}", "are always read at any depth"),
        ("{path: in/*.csv}", "{path: a.csv, options: {enforceSchema: true}}", "columns in another order"),
        ("{path: in/*.csv}", "{path: a.json, options: {samplingRatio: 0.1}}", "what the sample does not show"),
        ("{path: in/*.csv}", "{path: a.json, options: {allowNumericLeadingZeros: true}}", "00123 would become 123"),
        ("{path: in/*.csv}", "{path: a.json, options: {dropFieldIfAllNull: true}}", "would be dropped"),
        ("{path: in/*.csv}", "{path: a.parquet, options: {mergeSchema: false}}", "would be dropped"),
        ("{path: in/*.csv}", "{path: a.csv, options: {maxRecords: 5}}", "it is not one of basePath, charset"),
        ("{path: in/*.csv}", "{path: a.csv, options: {quotes: x}}", "did you mean 'quote'"),
        ("{path: in/*.csv}", "{path: a.csv, options: {sep: ;, SEP: ','}}", "occurs twice"),
        ("{path: in/*.csv}", "{path: a.csv, options: {__globPaths__: true}}", "cannot be set"),
        ("{path: in/*.csv}", "{path: a.csv}\n  conf: {spark.sql.caseSensitive: true}", "could be lost while reading"),
        (
            "{path: in/*.csv}",
            "{path: a.csv}\n  conf: {spark.hadoop.mapreduce.input.linerecordreader.line.maxlength: 9}",
            "could be lost while reading",
        ),
        ("{path: in/*.csv}", "{path: a.csv}\n  mode: merge", "p.yml:2: write: `mode: merge` needs `keys`: the columns"),
        ("{path: in/*.csv}", "{path: a.csv}\n  mode: sql", "`mode: sql` needs `statements`: the SQL to run"),
        ("{path: in/*.csv}", "{path: a.csv}\n  keys: [id]", "`keys` need `mode: merge`, and the mode is `append`"),
        ("{path: in/*.csv}", "{path: a.csv}\n  conf: {spark.sql.extensions: x}", "cannot be set by a pipeline"),
        ("{path: in/*.csv}", "{path: a.csv}\n  conf: {hadoop.x: y}", "is not a Spark setting"),
        ("source: {path: in/*.csv}", "job: j.py\n  mode: overwrite", "are only for the job 'ingest'"),
        ("source: {path: in/*.csv}", "mode: append", "give a source"),
        ("source: {path: in/*.csv}", "mode: sql\n  statements: [DROP TABLE x]", "is not allowed: write DELETE FROM"),
        ("source: {path: in/*.csv}", "mode: sql\n  statements: [DELETE FROM geo.`cities@main`]", "names a branch"),
        ("source: {path: in/*.csv}", "mode: compact\n  transform: SELECT 1", "`mode: compact` reads tables"),
        ("{path: in/*.csv}", "{path: a.csv}\n  options: {x: y}", "`options` go with `mode: compact`"),
        ("    checks:", "    sort_by: [weeks(day) desc]\n    checks:", "'weeks(day) desc' is not an order"),
        ("    checks:", "    partition_by: [weeks(day)]\n    checks:", "'weeks(day)' is not a partition"),
    ],
)
def test_each_mistake_is_reported_with_its_line_and_a_remedy(old: str, new: str, message: str) -> None:
    assert message in mistakes(GOOD.replace(old, new, 1))


def test_all_mistakes_are_reported_at_once() -> None:
    wrong = GOOD.replace("name: cities", "name: a b").replace("not_null", "not_nul").replace("path", "pth")
    assert [line.split(":")[1] for line in mistakes(wrong).splitlines()] == ["1", "3", "7"]


def test_keys_that_are_missing_or_unknown_at_one_place_are_one_message() -> None:
    wrong = GOOD.replace("not_null: [id, name]", "accepted_values: {column: id, allowed: [1]}")
    (line,) = mistakes(wrong).splitlines()
    assert line.startswith("p.yml:7: unknown key 'allowed', 'values' is missing; valid keys: column, columns, values,")
    lines = mistakes(GOOD + "nmae: x\nfoo: 1\n").splitlines()
    assert [line.split(":")[1] for line in lines] == ["8", "9"], "each unknown key has its line"


@pytest.mark.parametrize("text", ["", "- a", "just text"])
def test_what_is_no_mapping(text: str) -> None:
    assert "a pipeline file is a mapping" in mistakes(text)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_bytes("name: Grün\n".encode("latin-1"))
    with pytest.raises(InvalidPipeline, match="byte 9 is not UTF-8: save the file as UTF-8"):
        read_pipeline(tmp_path / "p.yml")


def test_a_value_of_another_kind_is_refused_in_plain_words() -> None:
    assert mistakes(GOOD + "approval: {required: zwei}\n").endswith("input should be a whole number, not 'zwei'")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidPipeline, match="cannot be read: No such file"):
        read_pipeline(tmp_path / "none.yml")


def test_yaml_1_2_means_what_it_says() -> None:
    """NO is Norway's code, not a boolean. A date is a text that ANSI casts."""
    text = GOOD.replace("not_null: [id, name]", "accepted_values: {column: id, values: [NO, on, 2024-01-05, 7]}")
    check = parse_pipeline(text, "p.yml").tables["geo.cities"].checks[0]
    assert check.model_dump()["values"] == ["NO", "on", "2024-01-05", 7]


def test_names_of_great_expectations_are_understood() -> None:
    text = GOOD.replace(
        "not_null: [id, name]", "expect_column_values_to_be_between: {column: id, min_value: 1, max_value: 9}"
    )
    check = parse_pipeline(text, "p.yml").tables["geo.cities"].checks[0]
    assert check.model_dump(include={"check", "min", "max"}) == {"check": "accepted_range", "min": 1, "max": 9}


def test_an_address_in_a_statement_is_no_branch() -> None:
    write = "mode: sql\n  statements: [\"DELETE FROM geo.cities WHERE mail = 'it\\\\'s@x.org'\"]"
    pipeline = parse_pipeline(GOOD.replace("source: {path: in/*.csv}", write), "p.yml")
    assert pipeline.write.statements[0].endswith("s@x.org'")


@pytest.mark.parametrize(
    ("term", "parts"),
    [
        ("city", ("identity", None, "city")),
        ("months(on)", ("month", None, "on")),
        ("bucket(16, id)", ("bucket", 16, "id")),
        ("truncate(4,a b)", ("truncate", 4, "a b")),
    ],
)
def test_partitions(term: str, parts: tuple[str, int | None, str]) -> None:
    assert partition_parts(term) == parts


@pytest.mark.parametrize(
    ("path", "form"),
    [("a.parquet", "parquet"), ("x/*.csv.gz", "csv"), ("x.JSONL", "json"), ("s3://b/x.orc", "orc")],
)
def test_formats_by_suffix(path: str, form: str) -> None:
    assert Source(path=path).reader_format() == form


@pytest.mark.parametrize(
    ("write", "table", "words"),
    [
        ("{job: job.py}", _QUARANTINING, "a program of yours does not show that"),
        ("{mode: sql, statements: [DELETE FROM t.x]}", _QUARANTINING, "`mode: sql` does not show that"),
        ("{mode: compact}", _QUARANTINING, "`mode: compact` does not show that"),
        (
            "{source: {path: a.csv}}",
            "{properties: {write.metadata.delete-after-commit.enabled: true}}",
            "lets a write on a branch delete files that main needs",
        ),
        ("{source: {path: a.csv}}", "{properties: {GC.enabled: 'TRUE'}}", "delete files that main needs"),
        ("{source: {path: a.csv}}", "{properties: {history.expire.min-snapshots-to-keep: 1}}", "expiry of snapshots"),
        ("{mode: requeue, statements: [DELETE FROM t.x]}", "{}", "is only for the command of that name"),
    ],
)
def test_what_could_lose_rows_or_files_is_refused(write: str, table: str, words: str) -> None:
    with pytest.raises(InvalidPipeline, match=words):
        parse_pipeline(f"name: p\nwrite: {write}\ntables:\n  t.x: {table}\n", "p.yml")


@pytest.mark.parametrize("mode", ["append", "overwrite", "overwrite_partitions", "merge"])
def test_bad_rows_can_be_quarantined_where_the_run_knows_its_rows(mode: str) -> None:
    keys = ", keys: [a]" if mode == "merge" else ""
    table = _QUARANTINING.replace("{", "{partition_by: [a], ", 1)
    text = f"name: p\nwrite: {{mode: {mode}, source: {{path: a.csv}}{keys}}}\ntables:\n  t.x: {table}\n"
    assert parse_pipeline(text, "p.yml").write.knows_its_rows
