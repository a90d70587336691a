"""Columns of Parquet and ORC files that Spark does not read are refused at the start of a run, and by the worker."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import orc

from lakehouse.source_files import check_columns_in, find_files, inspect_files
from runtime.pipeline.pipeline_input import inspect_input, load_pipeline
from sluice.contracts.run_request import InputFile
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source


def _by_duckdb(value: str) -> Callable[[Path], Any]:
    def write(path: Path) -> None:
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT 1 AS id, {value} AS x) TO '{path}' (FORMAT PARQUET)")

    return write


def _by_polars(**columns: Any) -> Callable[[Path], Any]:
    return lambda path: pl.DataFrame(columns).write_parquet(path)


_REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "interval": (_by_duckdb("INTERVAL '1 month'"), "column x is INTERVAL, which Spark does not read: write it as text"),
    "nested interval": (_by_duckdb("{'i': INTERVAL '1 day'}"), "column x.i is INTERVAL, which"),
    "time": (_by_duckdb("TIME '10:30'"), "column x is TIME, which Spark does not read: write it as text"),
    "time with a zone": (_by_duckdb("'10:30:00+02'::TIMETZ"), "column x is TIME, which"),
    "uuid": (_by_duckdb("uuid()"), "column x is UUID, which"),
    "int128": (
        _by_polars(id=[1], x=pl.Series([2**100], dtype=pl.Int128)),
        "column x is INT128, which Spark does not read: write it as a BIGINT, or as DECIMAL",
    ),
    "uint128": (_by_polars(id=[1], x=pl.Series([1], dtype=pl.UInt128)), "column x is INT128, which"),
}


@pytest.mark.parametrize("name", _REFUSED)
@pytest.mark.parametrize("transform", ["", "SELECT id FROM source"])
def test_a_start_and_a_worker_refuse_a_type_that_spark_does_not_read(tmp_path: Path, name: str, transform: str) -> None:
    write, refusal = _REFUSED[name]
    file = tmp_path / "a.parquet"
    write(file)
    stated = {"source": {"path": str(file)}, **({"transform": transform} if transform else {})}
    pipeline = tmp_path / "p.yml"
    pipeline.write_text(f"name: p\nwrite: {json.dumps(stated)}\ntables: {{t.v: {{checks: [not_null: id]}}}}\n")
    with pytest.raises(InvalidInput) as refused:
        inspect_input(load_pipeline(pipeline, {}, tmp_path), pipeline)
    assert str(refused.value).startswith(f"{file}: the {refusal}"), refused.value
    source = Source(path=str(file))
    with pytest.raises(InvalidInput) as refused:
        inspect_files(find_files(source), source)
    assert str(refused.value).startswith(f"{file}: the {refusal}"), refused.value


def test_a_time_of_orc_with_a_zone(tmp_path: Path) -> None:
    file = tmp_path / "a.orc"
    orc.write_table(pa.table({"t": pa.array([1], pa.timestamp("us", "UTC"))}), str(file))
    with pytest.raises(InvalidInput, match="column t is a timestamp with local time zone"):
        check_columns_in([InputFile(path=str(file), size=1, identity="")], "orc", is_transformed=False)


@pytest.mark.parametrize("format", ["parquet", "orc"])
@pytest.mark.parametrize("content", [b"PAR1", b"ORC" + b"\xff" * 900, b"PAR1" + b"\xff" * 900])
def test_damage_is_left_to_the_identification(tmp_path: Path, format: Any, content: bytes) -> None:
    """It tells a file that is still being written from one that is broken."""
    file = tmp_path / f"a.{format}"
    file.write_bytes(content)
    check_columns_in([InputFile(path=str(file), size=1, identity="")], format, is_transformed=False)
