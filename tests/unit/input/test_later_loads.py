"""Older rows do not replace younger ones: partitions, requeues, and writes that replace partitions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table as IcebergTable
from temporalio.exceptions import ApplicationError

from activities.publishing.plan_publish import PlanPublishActivity
from activities.quarantine.plan_requeue import PlanRequeueActivity
from activities.run.verify_write import VerifyWriteActivity
from engine.job import SparkJob
from engine.spark.configuration import session
from lakehouse.catalog import TableCommit, TableVersion
from lakehouse.input.later_loads import find_later_runs, find_loaded_partitions
from sluice.contracts.lake_queries import PlanRequeueInput, RequeuePlan, RequeueSelection
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import PlanPublishInput
from sluice.contracts.references import BranchRef
from sluice.contracts.write import JobReport, VerifyWriteInput, WriteResult
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import marks
from sluice.publishing.commit_properties import (
    PIPELINE,
    RELEASED_RUN,
    ROLLED_BACK,
    RUN_ID,
    SNAPSHOT_PROPERTY,
    WORKFLOW_ID,
)
from sluice.publishing.load_properties import PARTITION, PARTITION_MARK, PIPELINE_MARK, REQUEUED_RUNS
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.branch_run import Run, load, roll_back, run_of
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

MERGE = Write.model_validate({"mode": "merge", "keys": ["id"], "source": {"path": "/in.csv"}})
APPEND = Write.model_validate({"source": {"path": "/in.csv"}})
REPLACE = Write.model_validate({"mode": "overwrite_partitions", "source": {"path": "/in.csv"}})


def opened(lake: MemoryLake, name: str, partition: str, write: Write = MERGE, **order: Any) -> BranchRef:
    run = run_of(lake, name, partition)
    return run.open(write=write, order=LoadOrder(partition=partition, **order))


def test_an_older_partition_is_not_merged_over_a_younger_one(lake: MemoryLake) -> None:
    load(lake, "r1", "2018-01")
    load(lake, "r3", "2018-03")
    for partition in ("2018-03", "2018-04", "emea"):
        assert opened(lake, f"n{partition}", partition)
    with pytest.raises(
        ApplicationError, match=r"2018-02 is older than 2018-03, which main contains: .*--over-younger"
    ) as at:
        opened(lake, "r2", "2018-02")
    assert (at.value.type, at.value.non_retryable) == ("InvalidPipeline", True)
    assert lake.catalog.find_head(run_of(lake, "r2").ref.branch) is None, "nothing is left behind"
    assert opened(lake, "r2", "2018-02", over_younger=True)
    assert opened(lake, "r4", "2018-02", APPEND), "appended rows have no order"
    roll_back(lake, "r3")
    assert opened(lake, "r5", "2018-02"), "main does not hold the younger one any more"
    roll_back(lake, "back-r3")
    with pytest.raises(ApplicationError, match=r"older than 2018-03"):
        opened(lake, "r6", "2018-02")


def test_a_roll_back_that_is_rolled_back_brings_a_partition_and_its_table_back(lake: MemoryLake) -> None:
    """Each first load of a table is rolled back by dropping the table, so its name stood for three tables."""

    def put(run: str, version: TableVersion | None, **properties: str) -> None:
        given = {RUN_ID: run, WORKFLOW_ID: run, PIPELINE: "orders", **properties}
        tables = [TableCommit("shop.orders", version)]
        lake.catalog.commit_tables("main", lake.catalog.head("main"), run, tables, properties=given)

    versions = []
    for _ in range(3):
        lake.recreate("shop.orders")
        versions.append(lake.catalog.table_version("main", "shop.orders"))
    put("first", versions[0], **{PARTITION: "2018-03"})
    put("back-first", None, **{ROLLED_BACK: "first"})
    put("second", versions[1], **{PARTITION: "2018-03"})
    put("back-second", None, **{ROLLED_BACK: "second"})
    put("third", versions[2], **{PARTITION: "2018-01"})
    put("fourth", versions[2], **{PARTITION: "2018-02"})
    put("forth-second", versions[1], **{ROLLED_BACK: "fourth,third,back-second"})
    assert find_loaded_partitions(lake.catalog, {}, "orders", ["shop.orders"]) == {"2018-03"}


def test_another_pipeline_has_partitions_of_its_own(lake: MemoryLake) -> None:
    other = run_of(lake, "r1", "2018-03")
    other.ref = other.ref.model_copy(update={"pipeline": "q"})
    branch, written = other.write(1)
    other.publish(branch, written.head)
    assert opened(lake, "r2", "2018-02")


def test_snapshots_of_a_job_carry_the_partition_of_their_run() -> None:
    def properties(partition: str) -> dict[str, str]:
        job = SparkJob(program=Path("p"), folder=Path(), branch="b", catalog={}, pipeline="rides", partition=partition)
        named = session(Settings().spark_jobs, job).items()
        return {key.removeprefix(SNAPSHOT_PROPERTY): each for key, each in named if key.startswith(SNAPSHOT_PROPERTY)}

    assert properties("2018-01").items() >= {PIPELINE_MARK: "rides", PARTITION_MARK: "2018-01"}.items()
    assert not {PIPELINE_MARK, PARTITION_MARK} & properties("").keys()


def test_a_start_is_refused_before_there_is_a_run(lake: MemoryLake) -> None:
    """`plan` and every start by hand query a worker."""
    load(lake, "r3", "2018-03")
    planning = PlanPublishActivity(lake.catalog, {}, lake.loaded_files).plan_publish

    def plan(**order: Any) -> object:
        given = LoadOrder(partition="2018-02", **order)
        return run_activity(planning, PlanPublishInput(tables=["t.x"], pipeline="p", write=MERGE, order=given))

    with pytest.raises(ApplicationError, match=r"2018-02 is older than 2018-03"):
        plan()
    assert plan(over_younger=True)
    assert run_activity(planning, PlanPublishInput(tables=["t.x"]))


def test_a_backfill_with_a_partition_older_than_main_is_refused_before_it_starts(lake: MemoryLake) -> None:
    """An earlier version started it. The run of the partition failed, and so did every further try."""
    for run, month in {"r1": "2018-01", "r3": "2018-03", "r4": "2018-04"}.items():
        load(lake, run, month)
    planning = PlanPublishActivity(lake.catalog, {}, lake.loaded_files).plan_publish

    def plan(*partitions: str, **more: Any) -> object:
        given = PlanPublishInput(tables=["t.x"], pipeline="p", write=MERGE, partitions=list(partitions), **more)
        return run_activity(planning, given)

    with pytest.raises(ApplicationError, match=r"2018-02 is older than 2018-04, which main contains.*--over-younger"):
        plan("2018-01", "2018-02", "2018-05")
    assert plan("2018-01", "2018-03", "2018-05"), "those that main contains are skipped"
    with pytest.raises(ApplicationError, match=r"2018-01 is older than 2018-04"):
        plan("2018-01", again=True)
    roll_back(lake, "r3", "r4")
    assert plan("2018-02", "2018-03")


REQUEUED = parse_pipeline(
    "name: p\nwrite: {mode: merge, keys: [id], source: {path: in.csv}}\n"
    "tables: {t.x: {on_bad_rows: quarantine, max_bad_rows: 9}}\n",
    "p.yml",
)


def quarantine(folder: Path, *runs: str) -> TableVersion:
    """Create a quarantine table with a row of each run."""
    lake = MemoryLake(MemoryCatalog(), folder / "quarantine")
    lake.catalog.initialize_main()
    named = pa.table({"quarantined_run": list(runs)})

    def fill(table: IcebergTable) -> None:
        with table.update_schema() as update:
            update.union_by_name(named.schema)
        table.append(named)

    lake.change("main", "t.x__quarantine", fill)
    version = lake.catalog.table_version("main", "t.x__quarantine")
    assert version
    return version


def test_rows_are_not_requeued_over_those_of_a_younger_run(lake: MemoryLake, tmp_path: Path) -> None:
    load(lake, "r1")
    main = lake.catalog.main
    lake.point(main, "t.x__quarantine", quarantine(tmp_path, "r1"))
    planning = PlanRequeueActivity(lake.catalog, {}, "lake").plan_requeue

    def plan(**selection: str) -> RequeuePlan:
        given = PlanRequeueInput(pipeline=REQUEUED, selection=RequeueSelection.model_validate(selection))
        planned: RequeuePlan = run_activity(planning, given)
        return planned

    def start(planned: RequeuePlan, **order: Any) -> BranchRef:
        given = LoadOrder(runs=planned.runs, **order)
        return Run(lake, "again").open(
            write=planned.pipeline.write, order=given, tables=planned.pipeline.tables, schema_is_fixed=False
        )

    assert plan().runs == ["r1"] and start(plan())
    lake.catalog.delete_branch(Run(lake, "again").ref.branch)
    load(lake, "r2", ids=[2])
    with pytest.raises(ApplicationError, match=r"w-r2 changed t.x after these rows .*--run, or let .*--over-younger"):
        start(plan())
    assert plan(run="r2").runs == ["r2"] and start(plan(run="r2"))
    lake.catalog.delete_branch(Run(lake, "again").ref.branch)
    assert start(plan(), over_younger=True)
    appending = REQUEUED.model_copy(update={"write": APPEND})
    planned = run_activity(planning, PlanRequeueInput(pipeline=appending, selection=RequeueSelection()))
    assert (planned.runs, planned.files_of_runs) == ([], ["r1"]), "only other content of their files is younger"


def test_rows_that_a_requeue_quarantined_again_are_as_old_as_before(lake: MemoryLake) -> None:
    """Their first requeue was permitted by a person. In an earlier version, the second one needed no permission."""
    load(lake, "r1")
    load(lake, "r2", ids=[2])
    lake.append("main", "t.x", [3], run_of(lake, "q1").ref)
    head = lake.catalog.head("main")
    lake.catalog.commit_tables("main", head, "requeue", properties={RUN_ID: "q1", REQUEUED_RUNS: "r1"})
    assert find_later_runs(lake.catalog, {}, "t.x", ["q1"]) == ["w-r2"]


def test_which_later_runs_count(lake: MemoryLake) -> None:
    load(lake, "r1")
    at_first = lake.catalog.table_version("main", "t.x")
    load(lake, "other", ids=[5])
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "none", properties={RUN_ID: "r0"})

    def later(*runs: str) -> list[str]:
        return find_later_runs(lake.catalog, {}, "t.x", runs)

    assert later("r1") == ["w-other"] and later("other") == [] and later("r1", "other") == ["w-other"]
    assert later("unknown") == ["w-other", "w-r1"], "all that main contains may be younger"
    assert find_later_runs(lake.catalog, {}, "t.none", ["r1"]) == []
    assert at_first
    lake.point("main", "t.x", at_first)
    assert later("r1") == [], "the other one was rolled back"
    requeue = Run(lake, "q1")
    branch, written = requeue.write(7)
    lake.catalog.publish(branch, written.head, "ana", "requeue", {RUN_ID: "q1", REQUEUED_RUNS: "r1"})
    assert later("r1") == [], "the first part of the same rows"
    load(lake, "r3", ids=[8])
    assert later("r1") == ["w-r3"]
    lake.append("main", "t.x", [9])
    assert later("r1") == ["another program", "w-r3"]
    release = Run(lake, "release")
    branch, written = release.write(10)
    lake.catalog.publish(branch, written.head, "ana", "release", {RUN_ID: "release", RELEASED_RUN: "r9"})
    assert later("r9") == [], "main got the rows of r9 by its release"


def replacing(
    lake: MemoryLake, name: str, partition: str, ids: Sequence[int], pipeline: str = "p", **more: bool
) -> WriteResult:
    """Write as `mode: overwrite_partitions` does, verify, and publish."""
    run = run_of(lake, name, partition)
    run.ref = run.ref.model_copy(update={"pipeline": pipeline})
    branch = run.open(write=REPLACE, tables={"t.x": {"partition_by": ["id"]}})
    rows = pa.Table.from_pylist([{"id": each} for each in ids], schema=lake.arrow_schema)
    lake.change(
        branch.name, "t.x", lambda table: table.dynamic_partition_overwrite(rows, snapshot_properties=marks(run.ref))
    )
    given = VerifyWriteInput(run_ref=run.ref, branch=branch, write=REPLACE, tables=["t.x"], job=JobReport(), **more)
    result: WriteResult = run_activity(VerifyWriteActivity(lake.catalog, {}).verify_write, given)
    assert run.publish(branch, result.head).merged
    return result


def partitioned(lake: MemoryLake) -> None:
    """Create a table that is partitioned by its only column."""
    lake.catalog.initialize_main()
    lake.change("main", "t.x", lambda table: table.update_spec().add_identity("id").commit())


def test_a_partition_replaces_no_rows_of_another_one(lake: MemoryLake) -> None:
    partitioned(lake)
    replacing(lake, "r1", "2018-01", [1, 2])
    replacing(lake, "r2", "2018-02", [3])
    replacing(lake, "r1-again", "2018-01", [1, 2])
    with pytest.raises(
        ApplicationError, match=r"rows of 2018-02 would replace those of 2018-01: t.x keeps both in one"
    ) as refused:
        replacing(lake, "r2-late", "2018-02", [2, 3])
    assert (refused.value.type, refused.value.non_retryable) == ("InvalidInput", True)
    assert lake.ids("t.x") == [1, 2, 3]
    replacing(lake, "other", "2018-02", [2], pipeline="q")
    replacing(lake, "by-hand", "", [1])
    replacing(lake, "hourly", "2026-03-02T05:00:00+01:00", [9])
    replacing(lake, "next-hour", "2026-03-02T06:00:00+01:00", [9])
    with pytest.raises(ApplicationError, match="would replace those of 2026-03-02T06:00:00"):
        replacing(lake, "hour-before", "2026-03-02T05:00:00+01:00", [9])
    replacing(lake, "hour-of-day", "2026-03-02T05", [7])
    with pytest.raises(ApplicationError, match="2026-03-02T06 would replace those of 2026-03-02T05"):
        replacing(lake, "next-hour-of-day", "2026-03-02T06", [7])
    replacing(lake, "of-other-rows", "2026-03-02T05:00:00+01:00", [8])
    replacing(lake, "on-demand", "2026-03-02T05:00:00+01:00", [9], over_younger=True)


@pytest.mark.parametrize("problem", ["no partitions", "older files"])
def test_partitions_are_replaced_only_where_all_rows_are_in_them(lake: MemoryLake, problem: str) -> None:
    load(lake, "r1", ids=[1, 2])
    if problem == "older files":
        lake.change("main", "t.x", lambda table: table.update_spec().add_identity("id").commit())
    words = {
        "no partitions": "would replace all rows of t.x: the table has no partitions. .* `mode: overwrite` if all",
        "older files": "keep old rows of t.x next to the new ones: .* `mode: compact` and `options: {rewrite-all",
    }[problem]
    with pytest.raises(ApplicationError, match=words):
        replacing(lake, "r2", "2018-01", [1])
    assert lake.ids("t.x") == [1, 2]


def test_files_of_an_older_partitioning_that_are_gone_do_not_matter(lake: MemoryLake) -> None:
    load(lake, "r1", ids=[1, 2])
    lake.change("main", "t.x", lambda table: table.update_spec().add_identity("id").commit())
    lake.replace_rows("main", "t.x", [{"id": 1}, {"id": 2}])
    replacing(lake, "r2", "2018-01", [1])
    assert lake.ids("t.x") == [1, 2]
