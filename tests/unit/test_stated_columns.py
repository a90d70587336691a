"""A stated schema with a column that no Parquet or ORC file has is refused: it would be NULL in each row."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from lakehouse.source_files import distinct_files, find_files, inspect_files
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source

WRITERS = {"parquet": parquet.write_table, "orc": orc.write_table}


def inspect(folder: Path, format: str, schema: str) -> int | None:
    source = Source.model_validate({"path": str(folder), "format": format, "schema": schema})
    return inspect_files(distinct_files(find_files(source))[0], source).rows


@pytest.mark.parametrize("format", WRITERS)
def test_a_column_that_no_file_has_is_refused(format: str, tmp_path: Path) -> None:
    WRITERS[format](pa.table({"id": [1], "amount": [5]}), str(tmp_path / f"a.{format}"))
    WRITERS[format](pa.table({"id": [2], "late": [5]}), str(tmp_path / f"b.{format}"))
    assert inspect(tmp_path, format, "ID BIGINT, amount BIGINT, late BIGINT") == 2
    with pytest.raises(InvalidInput, match=r"no file has the column 'amout' of source\.schema \(did you mean 'amount'"):
        inspect(tmp_path, format, "id BIGINT, amout BIGINT")
    with pytest.raises(InvalidInput, match=r"no file has the column 'x' of source\.schema, but id, amount, late"):
        inspect(tmp_path, format, "id BIGINT, x BIGINT")


def test_a_column_of_a_folder_may_be_stated(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    parquet.write_table(pa.table({"id": [1]}), str(tmp_path / "day=1" / "a.parquet"))
    assert inspect(tmp_path, "parquet", "id BIGINT, day INT") == 1


def test_a_field_of_a_json_record_may_be_absent(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    assert inspect(tmp_path, "json", "id BIGINT, note STRING") == 1
