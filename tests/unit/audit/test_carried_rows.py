"""Rows that a merge left unchanged are not `added`. Only a comparison of rows by Spark can identify them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice.audit.engine_choice import duckdb_refusals
from sluice.audit.planner import plan_table
from sluice.audit.scan_groups import scan_groups
from sluice.audit.spark_target import spark_target
from sluice.audit.tables import AuditedTable, CarriedRows
from sluice.checks.base import OTHER_ROWS, ROWS, Check
from sluice.checks.registry import REGISTRY, expand
from sluice.metadata.statistics import ColumnStatistics, FileStatistics, TableStatistics
from sluice.pipeline.table import Table
from sluice.publishing.bad_rows import bad_rows_of_table
from sluice.sql.dialect import SPARK
from spark_jobs import quarantine_rows

ADDED = FileStatistics(10, {"a": ColumnStatistics(nulls=2), "id": ColumnStatistics(nulls=0)}, "/added.parquet")
KEPT = FileStatistics(5, {"a": ColumnStatistics(nulls=0), "id": ColumnStatistics(nulls=0)}, "/kept.parquet")
CARRIED = CarriedRows("hash", ["/removed.parquet"])


def _check(written: Any) -> Check:
    (fields,) = expand(written)
    return REGISTRY[fields["check"]].model_validate(fields)


CHECKS = [_check({"not_null": "a"}), _check({"unique": "id"}), _check({"row_count": 1})]
STATISTICS = TableStatistics(types={"a": "string", "id": "int"}, added=[ADDED], live=[ADDED, KEPT])
TABLE = AuditedTable("t.x", CHECKS, STATISTICS, carried=CARRIED)


def test_metadata_decides_no_row_check_where_files_hold_carried_rows() -> None:
    plan = plan_table(TABLE, {}, lambda *_: [])
    assert set(plan.undecided) == {0, 1} and [each.check for each in plan.decided] == ["row_count"]
    without = plan_table(replace(TABLE, carried=None), {}, lambda *_: [])
    assert "not_null" in [each.check for each in without.decided]


def test_only_spark_compares_rows() -> None:
    undecided = {index: CHECKS[index] for index in (0, 1)}
    refused = duckdb_refusals(TABLE, undecided, 10**9)
    assert set(refused.values()) == {"unchanged rows are left out"} and set(refused) == {0, 1}
    assert not duckdb_refusals(replace(TABLE, carried=None), undecided, 10**9)


def test_carried_rows_are_other_rows() -> None:
    ((group,), _) = scan_groups(TABLE, {index: CHECKS[index] for index in (0, 1)}, SPARK)
    target = spark_target(group)
    views = {view.name: view for view in target.views}
    assert target.with_other_rows and set(views) == {ROWS, OTHER_ROWS}
    for view in views.values():
        assert view.compared
        compared = (view.compared.added, view.compared.main_hash, view.compared.removed)
        assert compared == (["/added.parquet"], "hash", ["/removed.parquet"])
    assert (views[ROWS].paths, views[OTHER_ROWS].paths) == (["/added.parquet"], ["/kept.parquet"])


def test_the_cap_counts_the_rows_that_the_run_brought() -> None:
    settings = Table.model_validate({"on_bad_rows": "quarantine", "max_bad_proportion": 0.5, "max_bad_rows": 3})
    rows = bad_rows_of_table(TABLE, [0, 1], settings, ["id"])
    assert (rows.limit, rows.max_proportion, rows.keys) == (3, 0.5, ["id"])
    assert rows.moved_before == 0
    appended = bad_rows_of_table(replace(TABLE, carried=None), [0, 1], settings, [])
    assert (appended.limit, appended.max_proportion, appended.keys) == (3, None, [])


def test_the_cap_counts_the_rows_that_earlier_audits_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rebase, the rows that were moved before are no longer among the added rows of the table."""
    table, capped = replace(TABLE, carried=None), {"on_bad_rows": "quarantine"}
    whole = Table.model_validate({**capped, "max_bad_rows": 3})
    share = Table.model_validate({**capped, "max_bad_proportion": 0.5})
    limits = [bad_rows_of_table(table, [0], each, moved_before=2).limit for each in (whole, share)]
    assert limits == [1, 4]  # 10 added rows and 2 moved ones: half of 12, less 2
    merged = bad_rows_of_table(TABLE, [0], share, ["id"], moved_before=2)
    assert (merged.max_proportion, merged.moved_before) == (0.5, 2)
    monkeypatch.setattr(quarantine_rows, "rows_of", lambda *_: SimpleNamespace(count=lambda: 8))
    spec = SimpleNamespace(audited_catalog="lake", main="main")
    assert quarantine_rows._limit(cast(Any, None), cast(Any, spec), merged) == 3  # half of 8 and 2, less 2
    requeued = bad_rows_of_table(table, [0], whole, requeued=True, moved_before=2)
    assert (requeued.limit, requeued.moved_before) == (10, 0)
