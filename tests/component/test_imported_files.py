"""Spark answers checks on files that DuckDB would read differently, in any table of a check."""

import uuid
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from lakehouse.open_catalog import open_catalog
from sluice.checks.verdicts import CheckResult
from sluice.settings import read_settings
from tests.harness.audited_table import Table, check_of

MAPPING = """'schema.name-mapping.default' = '[{"field-id": 1, "names": ["id"]}]'"""
RELATED = {"relationships": {"column": "parent", "to": "i.imported", "field": "id"}}


@pytest.fixture
def table(spark: SparkSession, stack: dict[str, str], tmp_path: Path) -> Table:
    return Table(spark, open_catalog(read_settings(stack)), "i.importing", tmp_path)


@pytest.fixture(autouse=True)
def _dropped(spark: SparkSession) -> Any:
    yield
    spark.sql("DROP TABLE IF EXISTS i.importing")
    spark.sql("DROP TABLE IF EXISTS i.imported")


def iceberg_table(table: Table, name: str) -> Any:
    """Return a table in Iceberg's own classes."""
    jvm: Any = table.spark.sparkContext._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(table.spark._jsparkSession, name)


def import_file(table: Table, name: str, ids: list[int]) -> None:
    """Append a file without field ids, as an import does."""
    path = write(table, pyarrow.table({"id": pyarrow.array(ids, pyarrow.int32())}))
    jvm: Any = table.spark.sparkContext._jvm
    loaded = iceberg_table(table, name)
    file = jvm.org.apache.iceberg.DataFiles.builder(loaded.spec()).withPath(str(path)).withFormat("PARQUET")
    loaded.newAppend().appendFile(
        file.withFileSizeInBytes(path.stat().st_size).withRecordCount(len(ids)).build()
    ).commit()
    table.spark.sql(f"REFRESH TABLE {name}")


def add_file(table: Table, name: str, columns: dict[str, list[int]], partition: str) -> None:
    """Add a file with field ids to a partition, without metrics except its row count."""
    fields = {field.name: field.field_id for field in table.state().table.schema().fields}
    written = [
        pyarrow.field(each, pyarrow.int32(), metadata={"PARQUET:field_id": str(fields[each])}) for each in columns
    ]
    path = write(table, pyarrow.table(list(map(pyarrow.array, columns.values())), schema=pyarrow.schema(written)))
    jvm: Any = table.spark.sparkContext._jvm
    loaded = iceberg_table(table, name)
    file = jvm.org.apache.iceberg.DataFiles.builder(loaded.spec()).withPath(str(path)).withFormat("PARQUET")
    file = file.withPartitionPath(partition).withFileSizeInBytes(path.stat().st_size).withRecordCount(2)
    loaded.newAppend().appendFile(file.build()).commit()
    table.spark.sql(f"REFRESH TABLE {name}")


def delete_position(table: Table, path: str, position: int, partition: str) -> None:
    """Commit a position delete of one data file, in another partition than the file's."""
    ids = {"file_path": (pyarrow.string(), 2147483546), "pos": (pyarrow.int64(), 2147483545)}
    fields = [pyarrow.field(name, kind, False, {"PARQUET:field_id": str(id)}) for name, (kind, id) in ids.items()]
    deletes = write(table, pyarrow.table([[path], [position]], schema=pyarrow.schema(fields)))
    jvm: Any = table.spark.sparkContext._jvm
    loaded = iceberg_table(table, table.name)
    file = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(loaded.spec()).ofPositionDeletes()
    file = file.withPath(str(deletes)).withFormat("PARQUET").withPartitionPath(partition).withReferencedDataFile(path)
    file = file.withFileSizeInBytes(deletes.stat().st_size).withRecordCount(1)
    loaded.newRowDelta().addDeletes(file.build()).commit()
    table.sql("REFRESH TABLE {t}")


def write(table: Table, rows: pyarrow.Table) -> Path:
    path = table.scratch / f"{uuid.uuid4()}.parquet"
    parquet.write_table(rows, path)
    return path


def seen(result: CheckResult | None) -> tuple[Any, ...]:
    assert result and not result.message, result
    return result.verdict, result.observed


def test_keys_of_an_imported_table_are_left_to_spark(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE i.imported (id INT) TBLPROPERTIES ({MAPPING})")
    import_file(table, "i.imported", [1, 2])
    table.fill("parent INT", before=[], added=["(1)", "(2)", "(3)"])
    check = check_of(RELATED)
    assert table.by_duckdb([check]) == [None]
    assert seen(table.by_spark([check])[0]) == ("fail", 1)


def test_keys_with_a_default_are_left_to_spark(table: Table) -> None:
    table.spark.sql("CREATE TABLE i.imported (name STRING) TBLPROPERTIES ('format-version' = '3')")
    table.spark.sql("INSERT INTO i.imported VALUES ('a')")
    jvm: Any = table.spark.sparkContext._jvm
    kind = jvm.org.apache.iceberg.types.Types.IntegerType.get()
    default = jvm.org.apache.iceberg.expressions.Expressions.lit(5)
    iceberg_table(table, "i.imported").updateSchema().addColumn("id", kind, default).commit()
    table.spark.sql("REFRESH TABLE i.imported")
    table.fill("parent INT", before=[], added=["(5)", "(6)"])
    check = check_of(RELATED)
    assert table.by_duckdb([check]) == [None]
    assert seen(table.by_spark([check])[0]) == ("fail", 1)


def test_files_without_field_ids_are_left_to_spark_where_no_names_are_mapped(table: Table) -> None:
    """Iceberg then identifies columns by position. DuckDB would read NULL, which most checks accept."""
    table.fill("id INT", before=[], added=[])
    import_file(table, "i.importing", [1, 200])
    check = check_of({"accepted_range": {"column": "id", "max": 100}})
    assert seen(table.by_spark([check])[0]) == ("fail", 1)
    with pytest.raises(duckdb.InvalidInputException, match="has no field ids"):
        table.by_duckdb([check])


def test_a_column_that_only_the_partition_has_is_left_to_spark(table: Table) -> None:
    """Iceberg reads its value from metadata. DuckDB would read NULL, which most checks accept."""
    table.fill("id INT, p INT", before=[], added=[], more="PARTITIONED BY (p)")
    add_file(table, "i.importing", {"id": [1, 2]}, "p=7")
    checks = [check_of({"accepted_values": {"column": "p", "values": [1]}}), check_of({"not_null": "p"})]
    assert table.by_duckdb(checks) == [None, None]
    assert [seen(each) for each in table.by_spark(checks)] == [("fail", 2), ("pass", 0)]


def test_position_deletes_of_another_partition_are_left_to_spark(table: Table) -> None:
    """Iceberg refuses them. DuckDB would return the rows that they delete."""
    table.fill("id INT, p INT", before=[], added=["(1, 7)", "(200, 7)"], more="TBLPROPERTIES ('format-version' = '2')")
    table.sql("ALTER TABLE {t} ADD PARTITION FIELD p")
    (entry,) = table.state().entries(added_only=True)
    delete_position(table, entry.data_file.file_path, 0, "p=8")
    check = check_of({"row_count": {"min": 2, "scope": "table"}})
    assert table.by_duckdb([check]) == [None]
    (answer,) = table.by_spark([check])
    assert answer.verdict == "error" and "Mismatched partition specs" in answer.message
