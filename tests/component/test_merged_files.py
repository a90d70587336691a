"""Parquet and ORC files of a merge: a column that one of them lacks would become NULL in rows of the table."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from tests.harness.ingester import Ingester

WHOLE = {"id": 1, "price": 1.5, "discount": 0.5, "s": {"a": 1, "b": 2}, "l": [{"a": 1, "b": 2}]}


def write(path: Path, *rows: dict[str, Any]) -> str:
    table = pa.Table.from_pylist(list(rows))
    orc.write_table(table, str(path)) if path.suffix == ".orc" else parquet.write_table(table, path)
    return str(path)


def without(name: str) -> dict[str, Any]:
    """Return a row of the table without a column, or without a field of the column `s` or `l`."""
    column, _, field = name.partition(".")
    if not field:
        return {key: value for key, value in WHOLE.items() if key != name}
    return {**WHOLE, column.removesuffix("[]"): {"a": 1} if column == "s" else [{"a": 1}]}


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("missing", ["discount", "s.b", "l[].b", "s"])
def test_a_file_without_a_column_of_the_table_is_refused(missing: str, form: str, job: Ingester) -> None:
    whole = write(job.folder / f"whole.{form}", WHOLE)
    job({"path": whole})
    new = write(job.folder / f"new.{form}", {**WHOLE, "id": 2})
    old = write(job.folder / f"old.{form}", without(missing))
    refused = job.refused({"path": [new, old]}, mode="merge", keys=["id"])
    assert refused.startswith(
        f"{old} has no column or field {missing}, and a merge would set it to NULL in {job.table}"
    )
    assert job.rows() == [WHOLE]


def test_numbers_of_other_types_and_a_column_of_other_letters(job: Ingester) -> None:
    """Files are read in groups if a column has several types."""
    job({"path": write(job.folder / "whole.parquet", WHOLE)})
    new = write(job.folder / "new.parquet", {**WHOLE, "price": 2})
    old = write(job.folder / "old.parquet", {**without("discount"), "id": 3})
    refused = job.refused({"path": [new, old]}, mode="merge", keys=["id"])
    assert refused.startswith(f"{old} has no column or field discount, and")
    other = write(job.folder / "old.parquet", {**without("discount"), "id": 3, "DISCOUNT": 0.25})
    job({"path": [new, other]}, mode="merge", keys=["id"])
    assert [(row["id"], row["price"], row["discount"]) for row in job.rows()] == [(1, 2.0, 0.5), (3, 1.5, 0.25)]


def test_files_without_a_column_are_merged_where_that_is_stated_or_harmless(job: Ingester) -> None:
    old, new = write(job.folder / "1.parquet", without("discount")), write(job.folder / "2.parquet", {**WHOLE, "id": 2})
    job({"path": [old, new]}, mode="merge", keys=["id"])  # the table is new
    assert [row["discount"] for row in job.rows()] == [None, 0.5]
    job({"path": write(job.folder / "3.parquet", WHOLE)}, mode="merge", keys=["id"])
    job({"path": [old, new]}, mode="merge", keys=["id"], transform="SELECT * FROM source")
    assert [row["discount"] for row in job.rows()] == [None, 0.5]
    empty = str(job.folder / "empty.parquet")
    parquet.write_table(pa.table({"id": pa.array([], pa.int64())}), empty)
    job({"path": [new, empty]}, mode="merge", keys=["id"])
    assert [row["discount"] for row in job.rows()] == [None, 0.5]


def test_a_column_without_a_type_yet_is_lacking_in_no_row(job: Ingester) -> None:
    job({"path": write(job.folder / "1.parquet", {"id": 1, "fee": None})}, mode="merge", keys=["id"])
    old, new = write(job.folder / "2.parquet", {"id": 1}), write(job.folder / "3.parquet", {"id": 2, "fee": 1.5})
    job({"path": [old, new]}, mode="merge", keys=["id"])
    assert job.rows() == [{"id": 1, "fee": None}, {"id": 2, "fee": 1.5}]


def test_a_value_that_the_table_does_not_store_is_named_after_a_column_got_its_type(job: Ingester) -> None:
    job({"path": write(job.folder / "1.parquet", {"id": 1, "n": 1, "fee": None})}, mode="merge", keys=["id"])
    old, new = write(job.folder / "2.parquet", {"id": 1, "n": 1.5}), job.folder / "3.parquet"
    refused = job.refused({"path": [old, write(new, {"id": 2, "n": 1.0, "fee": 1.5})]}, mode="merge", keys=["id"])
    assert refused.startswith(f"n: 1 value of type double ({old}) cannot be stored as bigint"), refused
