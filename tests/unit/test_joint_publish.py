"""What is published together: the values of all partitions, whose catalog an activity gets, and foreign commits."""

from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.collect_backfill import CollectBackfillActivity
from activities.open_backfill import OpenBackfillActivity
from activities.target_catalog import TargetCatalog
from lakehouse.catalog import TableCommit, TableVersion
from sluice.contracts.backfill import BackfillBranch, CollectBackfillInput, OpenBackfillInput
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidPipeline
from sluice.pipeline.placeholders import values_of_all
from sluice.publishing.certificate import PIPELINE, RUN_ID
from tests.harness.memory_catalog import MemoryCatalog

UNUSED = cast(Any, None)


def test_the_values_of_all_partitions() -> None:
    assert values_of_all(["2018-11", "2018-12", "2019-01"]) == {
        "partition": "2018-11..2019-01",
        "partition.year": "*",
        "partition.month": "*",
        "partition.start": "2018-11-01",
        "partition.end": "2019-02-01",
    }
    one = {"partition": "2018-02", "partition.year": "2018", "partition.month": "02"}
    assert values_of_all(["2018-02"]) == {**one, "partition.start": "2018-02-01", "partition.end": "2018-03-01"}
    assert values_of_all(["2019", "2018"])["partition.start"] == "2018-01-01"
    assert values_of_all(["emea", "apac"]) == {"partition": "emea..apac"}


def test_an_activity_is_made_once_for_a_branch_of_a_backfill_and_for_no_other() -> None:
    made: list[str] = []

    def make(target: str) -> list[Any]:
        def open_branch() -> str:
            return target

        made.append(target)
        return [open_branch]

    exchanged = TargetCatalog(make)
    target = "sluice/backfill/here/p"
    assert [exchanged.activity_for(target, "open_branch")() for _ in range(2)] == [target, target]
    for wrong in ("main", "", "wap/p/r/a1", "sluice/audit_results"):
        with pytest.raises(InvalidPipeline, match="no run publishes"):
            exchanged.activity_for(wrong, "open_branch")
    assert made == [target]


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog()


def opened(catalog: MemoryCatalog) -> BackfillBranch:
    activity = OpenBackfillActivity(catalog, "here")
    branch: BackfillBranch = ActivityEnvironment().run(activity.open_backfill, OpenBackfillInput(pipeline="p"))
    return branch


def collect(catalog: MemoryCatalog, branch: BackfillBranch) -> BackfillBranch:
    input = CollectBackfillInput(
        branch=branch.name,
        catalog_id=branch.catalog_id,
        pipeline=PipelineText(
            name="p.yml", text="name: p\nwrite: {source: {path: /in/*.csv}}\ntables: {t.x: {}}\n", folder="/"
        ),
        values={},
        workflow_id="w",
        run_id="r",
        day="2026-01-31",
        expires="2026-02-14T00:00:00+00:00",
    )
    activity = CollectBackfillActivity(catalog, {}, UNUSED, "here")
    collected: BackfillBranch = ActivityEnvironment().run(activity.collect_backfill, input)
    return collected


def test_a_branch_that_holds_nothing_is_left_to_be_deleted(catalog: MemoryCatalog) -> None:
    branch = opened(catalog)
    assert opened(catalog) == branch, "a second try finds it"
    assert collect(catalog, branch).name == "" and catalog.find_head(branch.name)


def test_a_branch_that_somebody_deleted_is_not_taken_for_an_empty_one(catalog: MemoryCatalog) -> None:
    branch = opened(catalog)
    catalog.delete_branch(branch.name)
    with pytest.raises(ApplicationError, match="is gone: start the backfill again"):
        collect(catalog, branch)


@pytest.mark.parametrize("properties", [{}, {PIPELINE: "q", RUN_ID: "x"}, {PIPELINE: "p", RUN_ID: "x"}])
def test_a_commit_that_no_run_published_is_refused(catalog: MemoryCatalog, properties: dict[str, str]) -> None:
    """Not even one with the properties of a run: it is no merge."""
    branch = opened(catalog)
    head = catalog.head(branch.name)
    version = TableVersion("/lake/t/x/metadata.json", 1)
    catalog.commit_tables(branch.name, head, "by hand", [TableCommit("t.x", version)], properties)
    with pytest.raises(ApplicationError, match="is not of a run of the pipeline p"):
        collect(catalog, branch)
    assert catalog.list_branches("quarantine/") == []
