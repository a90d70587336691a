"""Parquet files with VARIANT columns are refused before Spark starts."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from lakehouse.source_files import find_files, inspect_files
from lakehouse.source_files.variants import variant_columns
from runtime.pipeline.pipeline_input import inspect_input, load_pipeline
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source

REFUSAL = r"a\.parquet: the column v is VARIANT, a type that Sluice's tables cannot store: write it as text or as a "


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT 1 AS id, '{{\"a\": 1}}'::JSON::VARIANT AS v) TO '{path}'")
    return path


def pipeline(file: Path, transform: str = "") -> Path:
    path = file.with_name("p.yml")
    stated = json.dumps({"source": {"path": str(file)}, **({"transform": transform} if transform else {})})
    path.write_text(f"name: p\nwrite: {stated}\ntables: {{t.v: {{checks: [not_null: id]}}}}\n")
    return path


def test_a_start_and_a_worker_refuse_a_variant_that_no_transform_converts(file: Path) -> None:
    stated = pipeline(file)
    with pytest.raises(InvalidInput, match=REFUSAL):
        inspect_input(load_pipeline(stated, {}, file.parent), stated)
    source = Source(path=str(file))
    with pytest.raises(InvalidInput, match=REFUSAL):
        inspect_files(find_files(source), source)
    stated = pipeline(file, "SELECT id, to_json(v) AS v FROM source")
    assert inspect_input(load_pipeline(stated, {}, file.parent), stated).columns == ["id", "v"]
    assert inspect_files(find_files(source), source, is_transformed=True).rows == 1


def variants_of_spark(path: Path, *fields: dict[str, Any]) -> tuple[str, ...]:
    """Return the VARIANT columns of a file whose only sign of them is the schema that Spark 4.0 stores."""
    key, schema = "org.apache.spark.sql.parquet.row.metadata", json.dumps({"type": "struct", "fields": fields})
    variant = pa.array([{"value": b"", "metadata": b""}])
    parquet.write_table(pa.table({"v": variant}).replace_schema_metadata({key: schema}), path)
    return variant_columns(parquet.read_metadata(path))


def test_files_of_spark_that_do_not_annotate_the_column(tmp_path: Path) -> None:
    v = {"name": "v", "type": "variant"}
    in_list = {"name": "l", "type": {"type": "array", "elementType": {"type": "struct", "fields": [v]}}}
    in_map = {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "variant"}}
    text = {"name": "variant", "type": "string"}
    assert variants_of_spark(tmp_path / "a.parquet", text) == ()
    assert variants_of_spark(tmp_path / "a.parquet", text, v, in_list, in_map) == ("v", "l.v", "m")


def test_annotated_fields_at_any_depth() -> None:
    schema = """<pyarrow._parquet.ParquetSchema object at 0x7f>
required group field_id=-1 spark_schema {
  required int32 field_id=-1 x (Variant(1));
  optional group field_id=-1 a (b) (List) {
    repeated group field_id=-1 list {
      optional group field_id=2 element (Variant(1)) {
        required binary field_id=-1 metadata;
      }
    }
  }
  required group field_id=-1 v (Variant(1)) {
"""
    metadata = SimpleNamespace(schema=schema, metadata=None)
    assert variant_columns(cast(Any, metadata)) == ("a (b).list.element", "v")
