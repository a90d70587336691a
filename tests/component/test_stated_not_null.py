"""`NOT NULL` in a stated schema: a NULL in the files is refused, with its place."""

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from tests.harness.ingester import Ingester, file

STATED = "source.schema states NOT NULL"


def test_a_null_of_csv_is_refused_by_column(job: Ingester) -> None:
    path = file(job, "a.csv", 'id,amount,name\n1,1.5,a\n2,,b\n3,2.5,""\n')
    refused = job.refused({"path": path, "schema": "id INT NOT NULL, amount DECIMAL(5,2) NOT NULL, name STRING"})
    assert f"{path}: amount is NULL, and {STATED}" in refused and "1 such row" in refused
    refused = job.refused({"path": path, "schema": "id INT, amount DOUBLE, name STRING NOT NULL"})
    assert f"{path}: name is NULL, and {STATED}" in refused
    job({"path": path, "schema": "id INT NOT NULL, amount DOUBLE, name STRING"})
    assert [row["amount"] for row in job.rows()] == [1.5, None, 2.5]


@pytest.mark.parametrize("transform", [None, "SELECT id FROM source", "SELECT id, 1 AS v FROM source WHERE id > 5"])
def test_a_null_is_refused_whatever_the_transform_does(transform: str | None, job: Ingester) -> None:
    path = file(job, "a.csv", "id,v\n6,1\n7,\n")
    refused = job.refused({"path": path, "schema": "id INT NOT NULL, v INT NOT NULL"}, transform=transform)
    assert f"{path}: v is NULL, and {STATED}" in refused


def test_a_null_of_json_is_refused_at_any_depth(job: Ingester) -> None:
    path = file(job, "a.jsonl", '{"id": 1, "o": {"k": 1}}\n{"id": 2, "o": {"k": null}}\n{"o": null}\n')
    refused = job.refused({"path": path, "schema": "id INT, o STRUCT<k: INT NOT NULL>"})
    assert f"{path}: o is NULL, or has a field that is NULL, and {STATED}" in refused and "1 such row" in refused
    refused = job.refused({"path": path, "schema": "id INT NOT NULL, o STRUCT<k: INT>"})
    assert f"{path}: id is NULL, and {STATED}" in refused
    path = file(job, "b.json", '[{"id": 1, "l": [{"k": 1.5}]}, {"id": 2, "l": [{"j": 1}]}]')
    refused = job.refused({"path": path, "schema": "id INT, l ARRAY<STRUCT<k: DOUBLE NOT NULL, j: INT>>"})
    assert "b.json" in refused and f"and {STATED}" in refused


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_null_of_typed_files_is_refused_with_a_file(form: str, job: Ingester) -> None:
    table = pa.table({"id": pa.array([1, 2, None]), "o": pa.array([{"k": 1}, None, {"k": None}])})
    path = str(job.folder / f"a.{form}")
    orc.write_table(table, path) if form == "orc" else parquet.write_table(table, path)
    refused = job.refused({"path": path, "schema": "id BIGINT NOT NULL, o STRUCT<k: BIGINT>"})
    assert f"id: 1 row ({path}) is NULL, and {STATED}" in refused
    refused = job.refused({"path": path, "schema": "id BIGINT, o STRUCT<k: BIGINT NOT NULL>"})
    assert f"o: 1 row ({path}) is NULL, or has a field that is NULL, and {STATED}" in refused
    job({"path": path, "schema": "id BIGINT, o STRUCT<k: BIGINT>"})
    assert len(job.rows()) == 3


def test_a_folder_without_a_value_is_refused(job: Ingester) -> None:
    file(job, "days/day=__HIVE_DEFAULT_PARTITION__/a.csv", "id\n1\n")
    source = {"path": str(job.folder / "days"), "format": "csv", "schema": "id INT, day DATE NOT NULL"}
    assert f"is NULL, and {STATED}" in job.refused(source)


def test_constraints_of_one_type_at_different_depths(job: Ingester) -> None:
    """Columns of one type form one expression."""
    schema = "id INT, a STRUCT<x: INT NOT NULL>, b STRUCT<x: INT> NOT NULL"
    good = file(job, "a.jsonl", '{"id": 1, "a": null, "b": {"x": null}}\n{"id": 2, "a": {"x": 1}, "b": {}}\n')
    job({"path": good, "schema": schema})
    assert job.rows() == [{"id": 1, "a": None, "b": {"x": None}}, {"id": 2, "a": {"x": 1}, "b": {"x": None}}]
    bad = file(job, "b.jsonl", '{"id": 1, "a": {"x": 1}, "b": null}\n')
    assert f"{bad}: b is NULL, and {STATED}" in job.refused({"path": bad, "schema": schema})
    bad = file(job, "c.jsonl", '{"id": 1, "a": {"x": null}, "b": {"x": 1}}\n')
    assert f"{bad}: a is NULL, or has a field that is NULL, and {STATED}" in job.refused(
        {"path": bad, "schema": schema}
    )
    flat = file(job, "d.csv", "id,m,n\n1,,2\n")
    job.table += "_flat"
    assert f"{flat}: m is NULL" in job.refused({"path": flat, "schema": "id INT, m INT NOT NULL, n INT"})
    job({"path": flat, "schema": "id INT, m INT, n INT NOT NULL"})
