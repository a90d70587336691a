"""Joint publishing: the values of all partitions, the catalog of an activity, and foreign commits."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError

import worker
from activities.backfills.collect_backfill import CollectBackfillActivity
from activities.backfills.discard_backfill import DiscardBackfillActivity
from activities.backfills.open_backfill import OpenBackfillActivity
from activities.run.target_catalog import TargetCatalog
from lakehouse.catalog import TableCommit, TableVersion
from sluice.contracts.backfill import BackfillBranch, CollectBackfillInput, DiscardBackfillInput, OpenBackfillInput
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidPipeline
from sluice.pipeline.placeholders import values_of_all
from sluice.publishing.commit_properties import PIPELINE, RUN_ID
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import CAPABILITIES, MemoryCatalog

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


async def test_every_branch_shares_the_routes_that_the_worker_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_worker(*given: Any) -> Any:
        return given

    monkeypatch.setattr(worker, "make_worker", make_worker)
    monkeypatch.setattr(worker, "_open_for", lambda settings, target: MemoryCatalog())
    routes = tmp_path / "routes.yml"
    routes.write_text("- {to: 'json://127.0.0.1:1'}\n")
    settings = Settings.of(sluice_notifications_file=str(routes), sluice_worker_role="control", sluice_home=tmp_path)
    client = cast(Any, SimpleNamespace(namespace="default"))
    ((*_, activities, _, _, (for_target, *_)),) = cast(
        Any, worker.make_workers(client, settings, UNUSED, MemoryCatalog())
    )
    routes.unlink()
    (notify,) = (each for each in activities if each.__name__ == "notify")
    of_branch = for_target.activity_for("sluice/backfill/here/p", "notify")
    assert of_branch.__self__.notifier is notify.__self__.notifier


def opened(catalog: MemoryCatalog, request: str = "one") -> BackfillBranch:
    activity = OpenBackfillActivity(catalog, "here")
    input = OpenBackfillInput(pipeline="p", request=request)
    branch: BackfillBranch = run_activity(activity.open_backfill, input)
    return branch


def put(catalog: MemoryCatalog, branch: str) -> str:
    """Commit something to a branch; return its head."""
    version = TableVersion("/lake/t/x/metadata.json", 1)
    return catalog.commit_tables(branch, catalog.head(branch), "a partition", [TableCommit("t.x", version)])


def test_the_branch_that_a_backfill_left_is_taken_up_by_the_same_request_alone(catalog: MemoryCatalog) -> None:
    """Another request would publish partitions that it did not name."""
    left = opened(catalog)
    head = put(catalog, left.name)
    assert opened(catalog) == left and catalog.head(left.name) == head
    with pytest.raises(ApplicationError, match=r"on the branch sluice/backfill/here/p/one\..*cancel p"):
        opened(catalog, "two")
    run_activity(DiscardBackfillActivity(catalog, "here").discard_backfill, DiscardBackfillInput(pipeline="p"))
    assert opened(catalog, "two").name == "sluice/backfill/here/p/two" and catalog.find_head(left.name) is None


def test_a_branch_that_holds_nothing_is_made_again_at_the_head_of_main(catalog: MemoryCatalog) -> None:
    left, other = opened(catalog), opened(catalog, "two")
    assert catalog.find_head(left.name) is None, "one of another request is deleted"
    head = put(catalog, "main")
    assert opened(catalog, "two") == other and catalog.head(other.name) == head


def test_what_backfills_of_a_pipeline_left_is_deleted_and_of_no_other(catalog: MemoryCatalog) -> None:
    names = [f"sluice/backfill/{each}/one" for each in ("here/p", "here/p2", "there/p")]
    for name in names:
        catalog.create_branch(name, catalog.initialize_main())
    discard = DiscardBackfillActivity(catalog, "here").discard_backfill
    for expected in ([names[0]], []):
        assert run_activity(discard, DiscardBackfillInput(pipeline="p")) == expected
    assert all(catalog.find_head(name) for name in names[1:])


def test_a_catalog_that_merges_into_main_alone_opens_no_branch() -> None:
    catalog = MemoryCatalog(capabilities=replace(CAPABILITIES, merges_into_branches=False))
    with pytest.raises(ApplicationError, match="this catalog merges only into main"):
        opened(catalog)


def collect(catalog: MemoryCatalog, branch: BackfillBranch, table: str = "{}", **values: str) -> BackfillBranch:
    input = CollectBackfillInput(
        branch=branch.name,
        catalog_id=branch.catalog_id,
        pipeline=PipelineText(
            name="p.yml",
            text=f"name: p\nwrite: {{source: {{path: /in/*.csv}}}}\ntables: {{t.x: {table}}}\n",
            folder="/",
        ),
        values=values,
        workflow_id="w",
        run_id="r",
        day="2026-01-31",
        expires="2026-02-14T00:00:00+00:00",
    )
    activity = CollectBackfillActivity(catalog, {}, UNUSED, "here")
    collected: BackfillBranch = run_activity(activity.collect_backfill, input)
    return collected


def test_a_branch_that_holds_nothing_is_left_to_be_deleted(catalog: MemoryCatalog) -> None:
    branch = opened(catalog)
    assert opened(catalog) == branch, "a second try finds it"
    assert collect(catalog, branch).name == "" and catalog.find_head(branch.name)


def test_a_check_that_names_one_partition_is_refused_for_all_of_them(catalog: MemoryCatalog) -> None:
    """The file may have changed while the backfill was paused: no row is of the partition `*`, so it would pass."""
    table = """{checks: [{row_count: {max: 0, where: "month = '{{ partition }}'"}}]}"""
    with pytest.raises(ApplicationError, match=r"\{\{ partition \}\} would be `\*`"):
        collect(catalog, opened(catalog), table, partition="*")


def test_a_branch_that_somebody_deleted_is_not_taken_for_an_empty_one(catalog: MemoryCatalog) -> None:
    branch = opened(catalog)
    catalog.delete_branch(branch.name)
    with pytest.raises(ApplicationError, match="does not exist: start the backfill again"):
        collect(catalog, branch)


@pytest.mark.parametrize("properties", [{}, {PIPELINE: "q", RUN_ID: "x"}, {PIPELINE: "p", RUN_ID: "x"}])
def test_a_commit_that_no_run_published_is_refused(catalog: MemoryCatalog, properties: dict[str, str]) -> None:
    """Even a commit with the properties of a run is refused: it is not a merge."""
    branch = opened(catalog)
    head = catalog.head(branch.name)
    version = TableVersion("/lake/t/x/metadata.json", 1)
    catalog.commit_tables(branch.name, head, "by hand", [TableCommit("t.x", version)], properties)
    with pytest.raises(ApplicationError, match="no run of the pipeline p made the commit"):
        collect(catalog, branch)
    assert catalog.list_branches("quarantine/") == []
