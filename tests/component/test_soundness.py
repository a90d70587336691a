"""Proofs from metadata never contradict the rows: over generated tables, the planner is compared with a full scan.

PyIceberg writes the tables, several files each, in all metrics modes, with the nulls, NaN, deletes and schema changes
that the specification allows. The truth is a scan of every row that no proof has shortened.
"""

import itertools
import math
import uuid
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, StaticTable, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

from engine.duckdb_scan import scan_group
from engine.duckdb_session import DuckDBSession
from lakehouse.audit.audited_tables import audited_table
from lakehouse.iceberg.table_state import TableState
from sluice.audit.answers import verdicts
from sluice.audit.planner import prove_checks
from sluice.audit.scan_groups import scan_groups
from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check
from sluice.checks.registry import REGISTRY, expand
from sluice.checks.verdicts import CheckResult
from sluice.sql.dialect import DUCKDB
from tests.harness.folder_store import IO, FolderStoreSession

MODES = st.sampled_from(["full", "truncate(2)", "truncate(16)", "counts", "none"])
DAY = date(2024, 1, 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3),
    "x": st.sampled_from([-1.5, -0.0, 0.0, 0.5, 2.0, math.nan, math.inf]),
    "s": st.sampled_from(["", "a", "ab", "abc", "abz", "b", "zz", "日本", "\U0010ffff\U0010ffff"]),
    "d": st.integers(0, 3).map(lambda days: DAY + timedelta(days=days)),
    "n": st.integers(-200, 200).map(lambda cents: Decimal(cents) / 100),
    "b": st.booleans(),
}
TYPES: dict[str, IcebergType] = {
    "i": IntegerType(),
    "x": FloatType(),
    "s": StringType(),
    "d": DateType(),
    "n": DecimalType(6, 2),
    "b": BooleanType(),
}
LATE = "late"
PROVEN: set[str] = set()
COUNTER = itertools.count()
Row = dict[str, Any]
FILES = st.lists(
    st.lists(
        st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), min_size=1, max_size=4
    ),
    min_size=1,
    max_size=3,
)
CHECKS: list[Any] = [
    *({"not_null": name} for name in [*VALUES, LATE]),
    *({"at_least_one": name} for name in [*VALUES, LATE]),
    *({"not_constant": name} for name in VALUES),
    {"not_null": {"column": "i", "mostly": 0.5}},
    {"not_null_proportion": {"column": "x", "min": 0.5}},
    {"row_count": {"min": 4}},
    {"not_nan": "x"},
    {"not_empty_string": "s"},
    {"accepted_range": {"column": "i", "min": -1, "max": 2}},
    {"accepted_range": {"column": "i", "min": -0.5, "inclusive": False}},
    {"accepted_range": {"column": "x", "min": 0, "max": 2}},
    {"accepted_range": {"column": "s", "min": "a", "max": "abz"}},
    {"accepted_range": {"column": "d", "min": "2024-01-02"}},
    {"accepted_range": {"column": "n", "min": -1, "max": 1.5}},
    {"accepted_values": {"column": "i", "values": [-1, 0, 1]}},
    {"accepted_values": {"column": "s", "values": ["a", "b"]}},
    {"accepted_values": {"column": "b", "values": [True]}},
    {"not_accepted_values": {"column": "i", "values": [3]}},
    {"not_accepted_values": {"column": "s", "values": ["zz"]}},
    {"match_like": {"column": "s", "pattern": "a%"}},
    {"compare_columns": {"left": "i", "operator": "<=", "right": "i"}},
    {"compare_columns": {"left": "i", "operator": "!=", "right": LATE}},
    {"min_in_range": {"column": "i", "min": -2, "max": 1}},
    {"max_in_range": {"column": "n", "max": 1}},
    {"max_in_range": {"column": "x", "max": 1}},
    {"min_in_range": {"column": "s", "min": "a"}},
    {"mean_in_range": {"column": "i", "min": -1, "max": 1}},
    {"mean_in_range": {"column": "x", "min": 0, "max": 1}},
    {"sum_in_range": {"column": "i", "min": -3, "max": 4}},
    {"sum_in_range": {"column": "n", "min": -1}},
    {"quantile_in_range": {"column": "i", "quantile": 0.5, "min": -2, "max": 2}},
    {"unique": "i"},
]


class Folder(NoopCatalog):
    """A catalog of one table, with all its metadata files."""

    now: Table

    def load_table(self, identifier: str | tuple[str, ...]) -> Table:
        return self.now

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        metadata = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
        location = f"{metadata.location}/metadata/{uuid.uuid4()}.metadata.json"
        ToOutputFile.table_metadata(metadata, table.io.new_output(location))
        self.now = Table(table.name(), metadata, location, table.io, self)
        return CommitTableResponse(metadata=metadata, metadata_location=location)


def _empty(folder: Path, mode: str) -> Table:
    fields = [NestedField(number, name, kind) for number, (name, kind) in enumerate(TYPES.items(), 1)]
    location = f"{folder.as_uri()}/{uuid.uuid4()}"
    properties = {} if mode == "truncate(16)" else {"write.metadata.metrics.default": mode}
    metadata = new_table_metadata(
        Schema(*fields), UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, properties
    )
    file_io = load_file_io({}, location)
    first = f"{location}/metadata/0.metadata.json"
    ToOutputFile.table_metadata(metadata, file_io.new_output(first))
    return Table(("n", "t"), metadata, first, file_io, Folder("folder"))


def _made(files: list[list[Row]], mode: str, evolves: bool, folder: Path) -> Table:
    """Write the files. Before the last one, add a column and, if the schema evolves, promote two."""
    table = _empty(folder, mode)
    for file in files[:-1]:
        table.append(pa.Table.from_pylist(file, schema=table.schema().as_arrow()))
    with table.update_schema() as update:
        update.add_column(LATE, LongType())
        if evolves:
            update.update_column("i", LongType()).update_column("x", DoubleType())
    last = [{**row, LATE: row["i"]} for row in files[-1]]
    table.append(pa.Table.from_pylist(last, schema=table.schema().as_arrow()))
    return table


def _check(written: Any) -> Check:
    (fields,) = expand(written)
    return REGISTRY[fields["check"]].model_validate({**fields, "scope": "table"})


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(files=FILES, mode=MODES, evolves=st.booleans(), deleted=st.none() | st.integers(-3, 3))
def test_a_proof_never_contradicts_a_full_scan(
    tmp_path: Path, files: list[list[Row]], mode: str, evolves: bool, deleted: int | None
) -> None:
    table = _made(files, mode, evolves, tmp_path)
    checks = [_check(written) for written in CHECKS]
    state = TableState(StaticTable.from_metadata(table.metadata_location), None)
    statistics = audited_table("n.t", checks, state, {}).statistics
    if deleted is not None:  # the same rows, as if deletes had removed them in place: the files keep their statistics
        table.delete(f"i == {deleted}")
        state = TableState(StaticTable.from_metadata(table.metadata_location), None)
        statistics = replace(statistics, live=[replace(file, deletes=True) for file in statistics.live])
    truth = _scanned(audited_table("n.t", checks, state, {}), tmp_path)
    for index, evaluation in prove_checks(checks, statistics).items():
        if evaluation is not None:
            case = (CHECKS[index], mode, statistics.live, evaluation, truth[index])
            assert evaluation.level == truth[index].verdict, case
            assert evaluation.failed_rows in (None, truth[index].failed_rows), case
            PROVEN.add(str(CHECKS[index]))


@pytest.mark.slow
def test_the_proofs_were_tried() -> None:
    assert len(PROVEN) > len(CHECKS) * 0.8, [written for written in CHECKS if str(written) not in PROVEN]


def _scanned(table: AuditedTable, scratch: Path) -> list[CheckResult]:
    """Answer every check from all rows, on local files and on files in a store, with statistics that prove nothing."""
    silent = [replace(file, columns={}) for file in table.statistics.live]
    blind = replace(table, statistics=replace(table.statistics, live=silent, added=silent))
    (group,) = scan_groups(blind, dict(enumerate(table.checks)), DUCKDB)[0]
    with DuckDBSession("1GB", scratch) as session:
        answered = scan_group(session, group)
    if next(COUNTER) % 8 == 0:  # one example in eight, to save time
        with FolderStoreSession("1GB", scratch, io=IO) as store_session:
            assert scan_group(store_session, group) == answered
    return verdicts(group, answered, "duckdb")
