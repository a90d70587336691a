"""Statements and programs load a partition once: neither 2018 after 2018-01, nor 2018-01 after 2018."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.publishing.input_overlap import input_overlap
from activities.publishing.plan_publish import PlanPublishActivity
from sluice.contracts.input import PublicationCheck
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import PlanPublishInput
from sluice.contracts.references import BranchRef
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from tests.harness.activity import run_activity
from tests.harness.branch_run import load, roll_back, run_of
from tests.harness.memory_lake import MemoryLake

STATEMENTS = Write.model_validate({"mode": "sql", "statements": ["INSERT INTO t.x SELECT 1"]})
PROGRAM = Write.model_validate({"job": "/job.py"})


@pytest.mark.parametrize("write", [STATEMENTS, PROGRAM], ids=["sql", "program"])
@pytest.mark.parametrize(("first", "second"), [("2018", "2018-01"), ("2018-01", "2018"), ("2018-01-31", "2018-01")])
def test_a_part_of_a_partition_on_main_is_not_loaded_again(
    lake: MemoryLake, write: Write, first: str, second: str
) -> None:
    """Without files to compare, 2018 after its months doubled every row, with exit code 0."""
    load(lake, "r1", first)

    def open_scope(run: str, partition: str, **more: Any) -> BranchRef:
        order = LoadOrder(partition=partition, over_younger=True)
        return run_of(lake, run, partition).open(write=write, order=order, scope={"content": partition}, **more)

    with pytest.raises(
        ApplicationError, match=rf"run w-r1 loaded {first} into t\.x, and {second} would now be loaded: .*--again"
    ) as at:
        open_scope("r2", second)
    assert (at.value.type, at.value.non_retryable) == ("InvalidInput", True)
    assert lake.catalog.find_head(run_of(lake, "r2").ref.branch) is None, "nothing is left behind"
    assert open_scope("other", "2019-01")
    assert open_scope("again", second, again=True)
    roll_back(lake, "r1")
    assert open_scope("r3", second)


def test_a_partition_that_waited_is_not_published_after_a_larger_one(lake: MemoryLake) -> None:
    load(lake, "r2", "2018", [2])
    scope = LoadScope(content="2018-01")
    check = PublicationCheck(tables=["t.x"], pipeline="p", digest="r1", scope=scope)
    expected = "run w-r2 loaded 2018 into t.x, and 2018-01 would now be loaded"
    assert input_overlap(lake.loaded_files, check, "r1") == expected
    assert not input_overlap(lake.loaded_files, check, "r2"), "its own publication does not count"
    lake.recreate("t.x")
    assert not input_overlap(lake.loaded_files, check, "r1"), "the rows of 2018 went with the dropped table"


def test_a_month_whose_rows_went_with_a_dropped_table_does_not_hide_its_year(lake: MemoryLake) -> None:
    load(lake, "r1", "2018-01")
    lake.recreate("t.x")
    load(lake, "r2", "2018", [2])
    order = LoadOrder(partition="2018-01", over_younger=True)
    with pytest.raises(ApplicationError, match=r"run w-r2 loaded 2018 into t\.x"):
        run_of(lake, "r3", "2018-01").open(write=PROGRAM, order=order, scope={"content": "2018-01"})


def test_a_partition_is_compared_as_the_pipeline_uses_it(lake: MemoryLake) -> None:
    """A day on which an edited pipeline runs again is the day on main, although schedules name days by a time."""
    run = run_of(lake, "r1", "2018-01-31T06:00:00+00:00")
    day = LoadScope(content="2018-01-31")
    branch, written = run.write(1)
    run.ref = run.ref.model_copy(update={"partition": day.content})
    assert run.publish(branch, written.head).merged
    assert run_of(lake, "r2").open(write=PROGRAM, scope=day)
    with pytest.raises(ApplicationError, match=r"loaded 2018-01-31 into t\.x, and 2018-01 would now be loaded"):
        run_of(lake, "r3").open(write=PROGRAM, scope={"content": "2018-01"})
    moved = run_of(lake, "r4").open(tables={"t.monthly": Table()}, write=PROGRAM, scope={"content": "2018-01"})
    assert moved, "a pipeline that was edited to load another table"


def test_a_backfill_with_parts_of_a_partition_on_main_is_refused_before_it_starts(lake: MemoryLake) -> None:
    load(lake, "r1", "2018")
    load(lake, "r2", "2019-01")
    planning = PlanPublishActivity(lake.catalog, {}, lake.loaded_files).plan_publish

    def plan(*partitions: str) -> object:
        scopes = [LoadScope(content=each) for each in partitions]
        return run_activity(planning, PlanPublishInput(tables=["t.x"], pipeline="p", scopes=scopes))

    with pytest.raises(ApplicationError, match=r"run w-r1 loaded 2018 into t\.x, and 2018-02 would now be loaded"):
        plan("2017-12", "2018-02")
    assert plan("2018", "2019-01", "2019-02"), "partitions on main are skipped"
