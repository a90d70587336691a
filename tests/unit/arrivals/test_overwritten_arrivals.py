"""A file that is overwritten while its batch is under way: one content is published, and people are notified."""

from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from cli.run.start_pipeline import start_options
from lakehouse.source_files import find_files
from sluice.contracts.arrivals import ArrivalEntry, Batch, BatchRef, ZoneStatus, other_content_in
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.starting import PipelineText
from sluice.contracts.zone_loads import PlanLoadInput
from sluice.pipeline.model import Pipeline
from sluice.pipeline.source import Source
from sluice.presentation.arrivals import describe_file
from tests.harness.loading_run import TABLE, roll_back
from tests.harness.memory_zone import TEXT, Zone


def identity_of(file: Path) -> str:
    return find_files(Source(path=str(file), format="csv"))[0].identity


class InFlight:
    """A zone whose file `a.csv` was overwritten after its run had read it."""

    def __init__(self, folder: Path, overwritten: str) -> None:
        self.zone = Zone(folder, overwritten=overwritten)
        self.file = self.zone.landing.file("a.csv", "1")
        self.one_content = overwritten != "load"

    async def begin(self) -> None:
        assert self.zone.settled() == [["a.csv"]]
        (self.ref,) = self.zone.held
        rule = {"one_content_per_path": self.one_content, "loads_all_contents": not self.one_content}
        self.run = self.zone.landing.run("a.csv", **rule)
        self.branch, self.selected = await self.run.write()
        self.file.write_text("2")

    def publish(self) -> None:
        assert self.run.publish(self.branch, self.selected).merged
        self.zone.held = []

    def waits(self) -> bool:
        """Return True if no batch gets the new content, however often the zone is listed."""
        listings = [self.zone.list_files(after=60, files=named) for named in (None, [self.file], [])]
        assert not any(each.batches or each.kept_out for each in listings)
        assert listings[-1].in_batches == {other_content_in(self.ref.id): 1}
        return self.zone.states()["a.csv"] == ("in a batch", other_content_in(self.ref.id))


@pytest.mark.parametrize("overwritten", ["alert", "ignore", "load"])
async def test_content_that_comes_while_a_run_has_the_path_is_judged_when_the_run_ended(
    tmp_path: Path, overwritten: str
) -> None:
    given = InFlight(tmp_path, overwritten)
    await given.begin()
    assert given.waits()
    given.publish()
    ended = given.zone.list_files()
    if overwritten == "load":
        assert given.zone.names(ended) == [["a.csv"]]
        return
    assert ended.batches == [] and given.zone.states()["a.csv"][0] == "ignored"
    assert [file.reason for file in ended.kept_out] == (
        ["overwritten: run w-r1 loaded this path with other content"] if overwritten == "alert" else []
    )


async def test_the_newer_content_of_a_run_that_was_not_published_is_simply_loaded(tmp_path: Path) -> None:
    given = InFlight(tmp_path, "alert")
    await given.begin()
    assert given.waits()
    given.zone.held = []  # the run failed because the file had changed
    assert given.zone.names(given.zone.list_files()) == [["a.csv"]]


async def test_a_worker_that_lost_its_memory_waits_for_the_run_too(tmp_path: Path) -> None:
    given = InFlight(tmp_path, "alert")
    await given.begin()
    for memory in (given.zone.home / "arrivals").iterdir():
        memory.unlink()
    assert given.waits()


async def test_the_last_of_several_contents_is_the_one_that_is_judged(tmp_path: Path) -> None:
    given = InFlight(tmp_path, "alert")
    await given.begin()
    assert given.waits()
    given.file.write_text("3")
    assert given.zone.list_files().batches == [] and given.waits()
    given.file.write_text("1")  # as the run has it
    given.zone.list_files()
    given.zone.list_files(after=60)
    assert given.zone.states()["a.csv"] == ("in a batch", given.ref.id)
    given.publish()
    assert given.zone.list_files().kept_out == [] and given.zone.states()["a.csv"] == ("loaded", "w-r1")


async def test_content_behind_a_batch_that_is_kept_out_waits_for_a_person_who_is_told(tmp_path: Path) -> None:
    given = InFlight(tmp_path, "alert")
    await given.begin()
    assert given.waits()
    given.zone.states_of_batches = {given.ref.id: "kept out"}
    notified = given.zone.list_files()
    assert [(Path(file.path).name, file.reason) for file in notified.kept_out] == [
        ("a.csv", other_content_in(given.ref.id))
    ]
    assert given.waits(), "and people are told once"
    given.zone.states_of_batches = {given.ref.id: "set aside"}
    given.zone.held += [given.ref] * (given.ref not in given.zone.held)
    file = given.zone.landing.file("a.csv", "4")
    given.zone.list_files()
    assert given.zone.names(given.zone.list_files(after=60)) == [["a.csv"]], "what is set aside is its old content"
    assert identity_of(file) == given.zone.collector.batches.read(given.zone.held[-1])[0].identity


async def test_new_content_is_loaded_once_its_batch_is_set_aside(tmp_path: Path) -> None:
    given = InFlight(tmp_path, "alert")
    await given.begin()
    assert given.waits()
    given.zone.states_of_batches = {given.ref.id: "set aside"}
    assert given.zone.names(given.zone.list_files()) == [["a.csv"]]


def test_people_read_what_a_file_waits_for() -> None:
    ref = BatchRef(id="b1", location="", files=1, bytes=1)

    def shown(state: str) -> tuple[str, str]:
        zone = ZoneStatus.model_validate(
            {"name": "orders", "pipeline": PipelineText(name="", text="", folder=""), "paused": "", "problem": ""}
            | {"counts": {}, "latest_arrival": None, "next_look": "", "batches": [Batch(ref=ref, state=state)]}
        )
        entry = {"path": "/a.csv", "size": 1, "arrived_at": 0, "status": "in a batch", "detail": other_content_in("b1")}
        return describe_file(ArrivalEntry.model_validate(entry), zone, {})

    assert shown("running") == (
        "waiting",
        "batch b1 has this path with other content, and is running: "
        "the zone decides about the file when that batch has ended",
    )
    assert "`arrivals orders --retry b1` loads the files as they are now" in shown("kept out")[1]


async def test_a_run_that_no_zone_knows_any_more_publishes_no_second_content(tmp_path: Path) -> None:
    """The zone was removed and deployed again while its run waited: it has no batch, and both contents have a run."""
    given = InFlight(tmp_path, "alert")
    await given.begin()
    given.zone.held = []
    later = given.zone.landing.run("a.csv", one_content_per_path=True)
    branch, selected = await later.write()
    given.publish()
    publication = later.publish(branch, selected)
    assert not publication.merged and publication.conflicts == [TABLE]
    notified = r"main contains other content of .*a\.csv: run w-r1 loaded it into t\.x"
    with pytest.raises(ApplicationError, match=notified) as refused:
        await later.select(later.open())
    assert refused.value.type == "InputChanged", "the zone judges the files of its batch again"


async def test_two_contents_are_published_where_the_pipeline_says_so(tmp_path: Path) -> None:
    given = InFlight(tmp_path, "load")
    await given.begin()
    later = given.zone.landing.run("a.csv", loads_all_contents=True)
    branch, selected = await later.write()
    given.publish()
    assert not later.publish(branch, selected).merged, "the same table moved"
    assert later.publish(*await later.write()).merged


@pytest.mark.parametrize("becomes_of_it", ["it is overwritten", "it is removed and sent again"])
@pytest.mark.parametrize("overwritten", ["alert", "ignore", "load"])
@pytest.mark.parametrize("arrives", ["with the other", "during the run", "after the run"])
async def test_a_copy_counts_as_loaded_under_its_own_path_too(
    tmp_path: Path, arrives: str, overwritten: str, becomes_of_it: str
) -> None:
    """An earlier version loaded the new content of `b.csv` beside the old: each row was on main twice."""
    zone = Zone(tmp_path, overwritten=overwritten)
    zone.landing.file("a.csv", "1")
    if arrives == "with the other":
        zone.landing.file("b.csv", "1")
    assert zone.settled() == [["a.csv"]]
    if arrives == "during the run":
        zone.landing.file("b.csv", "1")
        assert zone.settled() == []
    await zone.load()
    if arrives == "after the run":
        zone.landing.file("b.csv", "1")
    assert zone.settled() == [] and zone.states()["b.csv"] == ("loaded", "w-r1")
    if becomes_of_it == "it is removed and sent again":
        (zone.landing.path / "b.csv").unlink()
        zone.list_files()
    zone.landing.file("b.csv", "2")
    zone.list_files()
    listed = zone.list_files(after=60)
    if overwritten == "load":
        assert zone.names(listed) == [["b.csv"]]
        return
    reason = f"overwritten: run w-r1 loaded the earlier content of this path from {zone.landing.path / 'a.csv'}"
    assert listed.batches == [] and zone.states()["b.csv"] == ("ignored", reason)
    assert [each.reason for each in listed.kept_out] == ([reason] if overwritten == "alert" else [])
    assert zone.list_files(after=600).kept_out == [], "people are told once"
    paths = [str(zone.landing.path / "b.csv")]
    (named,) = zone.collector.plan_load(zone.pipeline, PlanLoadInput(pipeline=TEXT, paths=paths)).files
    assert named.is_loadable and named.reason == f"{reason}, and its rows stay"


async def test_a_copy_that_is_overwritten_while_the_run_of_the_other_goes_on_waits_for_it(tmp_path: Path) -> None:
    given = InFlight(tmp_path, "alert")
    given.zone.landing.file("b.csv", "1")
    await given.begin()
    given.file.write_text("1")
    given.zone.landing.file("b.csv", "2")
    given.zone.list_files()
    assert given.zone.list_files(after=60).batches == []
    assert given.zone.states()["b.csv"] == ("in a batch", other_content_in(given.ref.id))
    given.publish()
    assert "the earlier content of this path" in given.zone.list_files().kept_out[0].reason


async def test_a_copy_whose_content_is_not_on_main_any_more_was_not_loaded(tmp_path: Path) -> None:
    """The run of the copied file was rolled back, or never published."""
    zone = Zone(tmp_path, overwritten="alert")
    zone.landing.file("a.csv", "1")
    zone.landing.file("b.csv", "1")
    zone.settled()
    await zone.load()
    zone.list_files()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("b.csv", "2")
    assert zone.settled() == [["b.csv"]]


async def test_a_copy_of_content_that_was_ignored_or_set_aside_is_a_first_file(tmp_path: Path) -> None:
    zone = Zone(tmp_path, overwritten="alert")
    zone.landing.file("a.csv", "1")
    zone.landing.file("b.csv", "1")
    zone.settled()
    zone.states_of_batches = {zone.held[0].id: "set aside"}
    zone.landing.file("b.csv", "2")
    assert zone.settled() == [["b.csv"]]


@pytest.mark.parametrize(
    ("overwritten", "options", "refuses"),
    [
        ("ignore", {}, True),
        ("alert", {}, True),
        ("load", {}, False),
        ("ignore", {"again": True}, False),
        ("ignore", {"publish": False}, False),
        ("", {}, False),
    ],
)
async def test_a_start_by_hand_treats_overwritten_files_as_the_pipeline_says(
    tmp_path: Path, overwritten: str, options: dict[str, bool], refuses: bool
) -> None:
    """The landing zone is not deployed, so no zone decides about the file."""
    source = {"source": {"format": "csv"} if overwritten else {"path": "/in", "format": "csv"}}
    arrival = {"arrival": {"from": str(tmp_path / "in"), "overwritten": overwritten}} if overwritten else {}
    pipeline = Pipeline.model_validate({"name": "p", "write": source, "tables": [TABLE], **arrival})
    start = start_options(pipeline, LoadOrder(), **{"again": False, "publish": True, **options})
    assert (start.one_content_per_path, start.again) == (refuses, options.get("again", False))
    assert start.loads_all_contents == (overwritten == "load")
    landing = Zone(tmp_path).landing
    names = ["a.csv", "b.csv", "new.csv"]
    landing.file("a.csv", "1")
    landing.file("b.csv", "2")
    await landing.run("a.csv", "b.csv").load()
    for number, name in enumerate(names, 3):
        landing.file(name, f"{number}")
    second = landing.run(*names, again=start.again, one_content_per_path=start.one_content_per_path)
    if not refuses:
        await second.load()
        return
    message = r"of \S+a\.csv and of \S+b\.csv: run w-r1 loaded the first .* move the overwritten files away, or"
    with pytest.raises(ApplicationError, match=message):
        await second.select(second.open())
