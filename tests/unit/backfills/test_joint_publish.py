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
from lakehouse.source_files import find_files
from sluice.contracts.backfill import BackfillBranch, CollectBackfillInput, DiscardBackfillInput, OpenBackfillInput
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidPipeline
from sluice.input.manifest import InputManifest, ManifestFile, ManifestHeader
from sluice.pipeline.placeholders import values_of_all
from sluice.pipeline.source import Source
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.commit_properties import PIPELINE, RUN_ID
from sluice.publishing.load_properties import PARTITION
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import CAPABILITIES, MemoryCatalog
from tests.harness.memory_lake import MemoryLake

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


async def collect(catalog: MemoryCatalog, branch: BackfillBranch, table: str = "{}", **values: str) -> BackfillBranch:
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
    collected: BackfillBranch = await run_activity(activity.collect_backfill, input)
    return collected


async def test_a_branch_that_holds_nothing_is_left_to_be_deleted(catalog: MemoryCatalog) -> None:
    branch = opened(catalog)
    assert opened(catalog) == branch, "a second try finds it"
    assert (await collect(catalog, branch)).name == "" and catalog.find_head(branch.name)


async def test_a_check_that_names_one_partition_is_refused_for_all_of_them(catalog: MemoryCatalog) -> None:
    """The file may have changed while the backfill was paused: no row is of the partition `*`, so it would pass."""
    table = """{checks: [{row_count: {max: 0, where: "month = '{{ partition }}'"}}]}"""
    with pytest.raises(ApplicationError, match=r"\{\{ partition \}\} would be `\*`"):
        await collect(catalog, opened(catalog), table, partition="*")


async def test_a_branch_that_somebody_deleted_is_not_taken_for_an_empty_one(catalog: MemoryCatalog) -> None:
    branch = opened(catalog)
    catalog.delete_branch(branch.name)
    with pytest.raises(ApplicationError, match="does not exist: start the backfill again"):
        await collect(catalog, branch)


@pytest.mark.parametrize("properties", [{}, {PIPELINE: "q", RUN_ID: "x"}, {PIPELINE: "p", RUN_ID: "x"}])
async def test_a_commit_that_no_run_published_is_refused(catalog: MemoryCatalog, properties: dict[str, str]) -> None:
    """Even a commit with the properties of a run is refused: it is not a merge."""
    branch = opened(catalog)
    head = catalog.head(branch.name)
    version = TableVersion("/lake/t/x/metadata.json", 1)
    catalog.commit_tables(branch.name, head, "by hand", [TableCommit("t.x", version)], properties)
    with pytest.raises(ApplicationError, match="no run of the pipeline p made the commit"):
        await collect(catalog, branch)
    assert catalog.list_branches("quarantine/") == []


class Collected:
    """A branch of a backfill with one partition, whose run loaded files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.catalog = folder, MemoryCatalog()
        self.lake = MemoryLake(self.catalog, folder / "tables")
        for name, text in {"a-2018-01.csv": "id\n1\n", "b-2018-01.csv": "id\n2\n"}.items():
            (folder / name).write_text(text)
        self.path = str(folder / "*-{{ partition }}.csv")
        files = find_files(Source(path=str(folder / "*-2018-01.csv"), format="csv"))
        self.branch = opened(self.catalog)
        manifest = self.lake.manifests.write(
            InputManifest(
                header=ManifestHeader(
                    run_id="r1", workflow_id="w1", pipeline="p", attempt=1, base="", tables=["t.x"], policy="skip",
                    again=False, input_digest="d",
                ),
                files=[ManifestFile(path=file.path, size=file.size, identity=file.identity) for file in files],
            )
        )  # fmt: skip
        target = self.catalog.publishing_to(self.branch.name)
        base = target.head(self.branch.name)
        target.create_branch("wap/p/r1/a1", base)
        run_ref = RunRef(run_id="r1", workflow_id="w1", pipeline="p", label="p", attempt=1, partition="2018-01")
        self.lake.append("wap/p/r1/a1", "t.x", [1, 2], run_ref)
        branch = BranchRef(name="wap/p/r1/a1", base=base, catalog_id=self.branch.catalog_id)
        properties = {PIPELINE: "p", RUN_ID: "r1", PARTITION: "2018-01", **input_properties("d", ["t.x"], manifest)}
        assert target.publish(branch, target.head(branch.name), "ana", "a partition", properties).merged

    async def collect(self) -> BackfillBranch:
        activity = CollectBackfillActivity(self.catalog, {}, self.lake.manifests, "here")
        input = CollectBackfillInput(
            branch=self.branch.name,
            catalog_id=self.branch.catalog_id,
            pipeline=PipelineText(
                name="p.yml", text=f"name: p\nwrite: {{source: {{path: '{self.path}'}}}}\ntables: [t.x]\n", folder="/"
            ),
            values=values_of_all(["2018-01"]),
            workflow_id="w",
            run_id="r",
            day="2026-01-31",
            expires="2026-02-14T00:00:00+00:00",
        )
        collected: BackfillBranch = await run_activity(activity.collect_backfill, input)
        return collected


@pytest.mark.parametrize("change", ["was replaced by other content", "was removed or renamed", "changed from 5 to 6"])
async def test_a_file_that_changed_after_its_partition_was_written_stops_the_publish(
    tmp_path: Path, change: str
) -> None:
    """An earlier version published the old rows, and said nothing."""
    collected = Collected(tmp_path)
    file = tmp_path / "b-2018-01.csv"
    file.write_text("id\n3\n" if "replaced" in change else "id\n33\n")
    if "removed" in change:
        file.unlink()
    expected = (
        rf"partition 2018-01: .*b-2018-01\.csv {change}.* after the backfill wrote its rows\. Nothing was published"
    )
    with pytest.raises(ApplicationError, match=expected) as refused:
        await collected.collect()
    assert refused.value.type == "InputChanged" and collected.catalog.list_branches("quarantine/") == []


async def test_files_that_are_as_they_were_read_stop_no_publish(tmp_path: Path) -> None:
    collected = Collected(tmp_path)
    (tmp_path / "b-2018-01.csv").touch()
    assert (await collected.collect()).name.startswith("quarantine/p/2026-01-31/")
