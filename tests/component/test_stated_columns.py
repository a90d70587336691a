"""Columns that `source.schema` states and typed files lack: a table gets no NULL in their place without a word."""

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from tests.harness.ingester import Ingester


def write(job: Ingester, form: str, name: str, **columns: object) -> str:
    path, table = str(job.folder / f"{name}.{form}"), pa.table(columns)
    orc.write_table(table, path) if form == "orc" else parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_stated_column_that_no_file_has_is_refused(form: str, job: Ingester) -> None:
    paths = [write(job, form, "a", id=[1]), write(job, form, "b", id=[2], o=[{"k": 1}])]
    refused = job.refused({"path": paths, "schema": "id BIGINT, o STRUCT<k: BIGINT>, amonut DOUBLE"})
    assert "no file has the column amonut, which source.schema states" in refused
    refused = job.refused({"path": paths, "schema": "id BIGINT, o STRUCT<k: BIGINT, j: BIGINT>"})
    assert "no file has the field o.j, which source.schema states" in refused
    transform = "SELECT id, o, CAST(NULL AS DOUBLE) AS amount FROM source"
    job({"path": paths, "schema": "ID BIGINT, o STRUCT<K: BIGINT>"}, transform=transform)
    assert [(row["id"], row["amount"]) for row in job.rows()] == [(1, None), (2, None)]


def test_columns_without_a_type_and_of_folders_are_columns(job: Ingester) -> None:
    (job.folder / "day=1").mkdir()
    write(job, "parquet", "day=1/a", id=[1], fee=pa.nulls(1))
    source = {"path": str(job.folder), "format": "parquet", "schema": "id BIGINT, fee DOUBLE, day INT"}
    job(source)
    assert job.rows() == [{"id": 1, "fee": None, "day": 1}]
