"""The built-in write job: formats, modes, and the input that it refuses."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from lakehouse.iceberg.table_state import TableState
from lakehouse.open_catalog import open_catalog
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.settings import read_settings
from tests.harness.ingester import ROWS, Ingester
from tests.harness.pipelines import csv_file
from tests.harness.warm_branch import BRANCH


def write_source(form: str, folder: Path) -> str:
    """Write ROWS in a format; return the path."""
    path = folder / f"in.{form}"
    if form == "csv":
        return str(csv_file(path, ROWS))
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif form == "json":
        path.write_text(json.dumps(ROWS, indent=2))
    elif form == "parquet":
        parquet.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        orc.write_table(pa.Table.from_pylist(ROWS), str(path))
    return str(path)


@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "parquet", "orc"])
def test_every_format_creates_the_table_and_appends(form: str, job: Ingester) -> None:
    path = write_source(form, job.folder)
    for times in (1, 2):
        answer = job({"path": path})
        assert (answer.rows_read, answer.rows_written) == (2, 2)
        assert job.rows() == sorted(ROWS * times, key=lambda row: row["id"])


def test_the_table_is_made_as_the_pipeline_says(job: Ingester, stack: dict[str, str]) -> None:
    rows = [{"id": n, "on": f"2024-0{1 + n % 3}-05", "odd name": n, "city": f"c{n}"} for n in range(9)]
    table = {
        "partition_by": ["month(on)", "bucket(4, id)", "truncate(1, city)"],
        "comment": "a table",
        "comments": {"odd name": "it's odd"},
        "properties": {"write.format.default": "orc"},
    }
    job({"path": str(csv_file(job.folder / "in.csv", rows))}, table)
    version = open_catalog(read_settings(stack)).table_version(BRANCH, job.table)
    assert version
    made = TableState.load(version, None, {}).table
    transforms = [(field.name, str(field.transform)) for field in made.spec().fields]
    assert transforms == [("on_month", "month"), ("id_bucket", "bucket[4]"), ("city_trunc", "truncate[1]")]
    assert made.schema().find_field("odd name").doc == "it's odd"
    assert made.properties["comment"] == "a table"
    assert made.properties["write.format.default"] == "orc"
    assert len(job.rows()) == 9


def test_overwrite_replaces_everything(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))})
    job({"path": str(csv_file(job.folder / "2.csv", [{"id": 9, "name": "z", "ratio": 2.5}]))}, mode="overwrite")
    assert job.rows() == [{"id": 9, "name": "z", "ratio": 2.5}]


def test_overwrite_partitions_replaces_only_those_of_the_input(job: Ingester) -> None:
    table = {"partition_by": ["name"]}
    job({"path": str(csv_file(job.folder / "1.csv", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]))}, table)
    job({"path": str(csv_file(job.folder / "2.csv", [{"id": 3, "name": "b"}]))}, table, mode="overwrite_partitions")
    assert job.rows() == [{"id": 1, "name": "a"}, {"id": 3, "name": "b"}]


def test_a_compaction_moves_files_into_the_present_partitions(job: Ingester, spark: SparkSession) -> None:
    """A compaction is the remedy that a write of partitions names when it meets older files."""
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    job({"path": str(csv_file(job.folder / "1.csv", rows))})
    spark.sql(f"ALTER TABLE nessie.{job.table} ADD PARTITION FIELD name")
    job({"path": str(csv_file(job.folder / "2.csv", [{"id": 3, "name": "b"}]))})

    def specs() -> list[int]:
        files = spark.sql(f"SELECT DISTINCT spec_id FROM nessie.{job.table}.data_files")
        return sorted(row[0] for row in files.collect())

    assert len(specs()) == 2
    job(mode="compact", options={"rewrite-all": "true"})
    assert len(specs()) == 1
    job({"path": str(csv_file(job.folder / "3.csv", [{"id": 4, "name": "b"}]))}, mode="overwrite_partitions")
    assert job.rows() == [rows[0], {"id": 4, "name": "b"}]


def test_a_compaction_of_no_table_or_with_an_unknown_option_is_refused(job: Ingester) -> None:
    with pytest.raises(InvalidPipeline, match="there is no table"):
        job(mode="compact")
    job({"path": str(csv_file(job.folder / "in.csv", ROWS))})
    with pytest.raises(IllegalArgumentException, match="min-files"):
        job(mode="compact", options={"min-files": "2"})


def test_merge_by_keys_updates_and_inserts(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))}, mode="merge", keys=["id"])
    newer = [{"id": 2, "name": "b", "ratio": 2.5}, {"id": 3, "name": "c", "ratio": 3.5}]
    answer = job({"path": str(csv_file(job.folder / "2.csv", newer))}, mode="merge", keys=["id"])
    assert answer.rows_merged == 2
    assert job.rows() == [ROWS[0], *newer]
    twice = str(csv_file(job.folder / "3.csv", [newer[0], newer[0]]))
    assert "merge keys (id) occur more than once in the input" in job.refused(
        {"path": twice}, mode="merge", keys=["id"]
    )
    keyless = str(csv_file(job.folder / "4.csv", [{"id": None, "name": "b", "ratio": 1.5}]))
    refused = job.refused({"path": keyless}, mode="merge", keys=["id"])
    assert refused.startswith(f"1 row without a value in a merge key (id) ({keyless}): write a value"), refused


def test_statements_run_in_order(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "in.csv", ROWS))})
    job(
        mode="sql",
        statements=[
            f"INSERT INTO {job.table} SELECT id + 10, name, ratio FROM {job.table}",
            f"UPDATE {job.table} SET name = 'late' WHERE id > 10",
            f"DELETE FROM {job.table} WHERE id = 12",
        ],
    )
    assert job.rows() == [*ROWS, {"id": 11, "name": "late", "ratio": 0.5}]


@pytest.mark.parametrize("condition", ["", "WHERE 1 = 1", "WHERE id = id OR id IS NULL", "WHERE id > 0"])
def test_a_delete_of_everything_deletes_everything(job: Ingester, condition: str) -> None:
    """The condition may be true for all rows, recognisably so for Spark or not."""
    job({"path": str(csv_file(job.folder / "in.csv", ROWS))})
    job(mode="sql", statements=[f"DELETE FROM {job.table} {condition}"])
    assert job.rows() == []


def test_transform_between_reading_and_writing(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    answer = job(source, transform="SELECT id, upper(name) AS name FROM source WHERE name IS NOT NULL")
    assert (answer.rows_read, answer.rows_written) == (2, 1)
    assert job.rows() == [{"id": 1, "name": "A"}]


def test_a_header_that_does_not_match(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))})
    wrong = str(csv_file(job.folder / "2.csv", [{"id": 1, "nane": "a", "ratio": 1.0}]))
    why = job.refused({"path": wrong})
    assert "has no column 'nane' (did you mean 'name'?)" in why
    assert "the input has no column 'name'" in why
    assert len(job.rows()) == 2


def test_files_whose_headers_differ(job: Ingester) -> None:
    csv_file(job.folder / "1.csv", [{"id": 1, "name": "a"}])
    csv_file(job.folder / "2.csv", [{"name": "a", "id": 1}])
    assert "header" in job.refused({"path": f"{job.folder}/*.csv"})


def test_a_row_with_too_many_fields(job: Ingester) -> None:
    path = csv_file(job.folder / "in.csv", ROWS)
    path.write_text(path.read_text() + "3,c,1.5,surplus\n")
    assert job.refused({"path": str(path)}) == f"{path}: it has 4 values for 3 columns; 1 such row. Correct the file"


def test_a_header_without_rows(job: Ingester) -> None:
    path = job.folder / "in.csv"
    path.write_text("id,name\n")
    assert job.refused({"path": str(path)}) == f"the input contains no rows: {path}"
    copy = job.folder / "in2.csv"
    copy.write_bytes(b"id,name\r\n")
    assert job.refused({"path": f"{job.folder}/*.csv"}) == f"the input contains no rows: {path} and 1 other file"


def test_a_column_that_is_not_there(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    with pytest.raises(InvalidInput, match=r"there is no column 'nme' \(did you mean 'name'\?\)"):
        job(source, {"checks": [{"check": "not_null", "column": "nme"}]})
    assert job.rows() == []


def test_a_query_that_names_what_is_not_there_is_named(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    refused = job.refused(source, transform="SELECT id, nmae FROM source")
    assert refused.startswith("transform: there is no column `nmae`; there are ") and "`name`" in refused
    job(source)
    statements = [f"DELETE FROM {job.table} WHERE id = 1", f"DELETE FROM {job.table} WHERE idd = 2"]
    refused = job.refused(mode="sql", statements=statements)
    assert refused.startswith("statement 2: there is no column `idd`; there are")
    refused = job.refused(mode="sql", statements=["DELETE FROM i.unknown WHERE id = 1"])
    assert refused.startswith("statement 1: there is no table `i`.`unknown`")


def test_a_transform_that_is_not_sql(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    with pytest.raises(ValueError, match="transform"):
        job(source, transform="SELEKT 1")


@pytest.mark.parametrize("condition", ["id > 0", "true", "part = 1"])
def test_a_delete_of_whole_files_is_marked_too(job: Ingester, stack: dict[str, str], condition: str) -> None:
    """Iceberg commits such a delete from metadata alone, in a code path that adds no marks to the snapshot."""
    rows = [{"id": number, "part": number % 2} for number in range(4)]
    job({"path": str(csv_file(job.folder / "in.csv", rows))}, {"partition_by": ["part"]})
    catalog = open_catalog(read_settings(stack))
    before = catalog.table_version(BRANCH, job.table)
    job(mode="sql", statements=[f"DELETE FROM {job.table} WHERE {condition}"])
    after = catalog.table_version(BRANCH, job.table)
    assert after and after != before
    state = TableState.load(after, before, {})
    assert state.snapshots and not state.unmarked([("tests", [1])])
