"""A listing of a landing zone that has files with known paths or content: copies, overwritten files, and roll-backs."""

from pathlib import Path

import pytest

from sluice.contracts.zone_loads import PlanLoadInput
from sluice.pipeline.scope import LoadScope
from tests.harness.loading_run import roll_back
from tests.harness.memory_zone import TEXT, Zone


@pytest.mark.parametrize("becomes_of_it", ["it is overwritten", "it is removed", "it is loaded"])
async def test_a_copy_of_a_file_is_loaded_if_the_file_is_not(zone: Zone, becomes_of_it: str) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.landing.file("b.csv", "1")
    assert zone.settled() == [["a.csv"]]
    if becomes_of_it == "it is loaded":
        await zone.load()
        assert zone.list_files().batches == []
        assert zone.states()["b.csv"] == ("loaded", "w-r1")
        return
    zone.held = []  # its run ended because the file changed meanwhile
    if becomes_of_it == "it is removed":
        file.unlink()
        assert zone.names(zone.list_files()) == [["b.csv"]]
        return
    file.write_text("2")
    zone.list_files()
    assert zone.names(zone.list_files(after=60)) == [["b.csv", "a.csv"]]


async def test_the_same_content_under_another_name_is_not_loaded_again(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("copy.csv", "1")
    assert zone.settled() == []
    assert zone.states()["copy.csv"] == ("loaded", "w-r1")


@pytest.mark.parametrize(("overwritten", "reported"), [("ignore", 0), ("alert", 1), ("load", 0)])
async def test_a_file_that_comes_again_with_other_content(tmp_path: Path, overwritten: str, reported: int) -> None:
    zone = Zone(tmp_path, overwritten=overwritten)
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    zone.list_files()
    result = zone.list_files(after=60)
    assert zone.names(result) == ([["a.csv"]] if overwritten == "load" else [])
    reason = "overwritten: run w-r1 loaded this path with other content"
    assert [each.reason for each in result.kept_out] == [reason] * reported
    if overwritten != "load":
        assert zone.states()["a.csv"] == ("ignored", reason)
    assert zone.list_files(after=600).kept_out == [], "people are told once"


async def test_a_file_in_the_place_of_one_that_was_rolled_back_is_loaded(zone: Zone) -> None:
    """Main has nothing of this path, so the file was not overwritten."""
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("a.csv", "2")
    assert zone.settled() == [["a.csv"]]


async def test_what_a_changed_pipeline_accepts_is_loaded(tmp_path: Path) -> None:
    zone = Zone(tmp_path, overwritten="ignore")
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    assert zone.settled() == [] and zone.states()["a.csv"][0] == "ignored"
    source = zone.pipeline.write.source
    assert source and zone.pipeline.arrival
    write = zone.pipeline.write.model_copy(update={"source": source.model_copy(update={"format": "parquet"})})
    loads = zone.pipeline.arrival.model_copy(update={"overwritten": "load"})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write, "arrival": loads})
    refused = zone.list_files()
    assert refused.batches == [] and [Path(each.path).name for each in refused.kept_out] == ["a.csv"]
    assert zone.list_files().kept_out == [], "people are told once"
    assert zone.states()["a.csv"][0] == "refused"
    write = zone.pipeline.write.model_copy(update={"source": source})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write})
    assert zone.names(zone.list_files()) == [["a.csv"]]


async def test_a_file_whose_run_was_rolled_back_is_left_to_people(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    for file in (zone.home / "arrivals").iterdir():
        file.unlink()
    assert zone.settled() == []
    assert zone.states()["a.csv"] == ("loaded", "w-r1 (rolled back)")


async def test_what_was_rolled_back_is_loaded_from_another_path(zone: Zone) -> None:
    """An earlier version did not load it: it recognised the content and ignored the path."""
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.list_files()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("corrected.csv", "1")
    assert zone.settled() == [["corrected.csv"]]
    await zone.load()
    zone.list_files()
    assert zone.states()["a.csv"] == zone.states()["corrected.csv"] == ("loaded", "w-r2")


async def test_content_that_was_rolled_back_and_replaced_is_loaded_when_it_is_sent_again(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("a.csv", "2")
    zone.settled()
    await zone.load()
    zone.pipeline = zone.pipeline.model_copy(
        update={"arrival": zone.pipeline.arrival and zone.pipeline.arrival.model_copy(update={"overwritten": "load"})}
    )
    zone.landing.file("a.csv", "1")
    assert zone.settled() == [["a.csv"]]


def merging(zone: Zone) -> None:
    """Change the pipeline of a zone to merge by a key."""
    write = zone.pipeline.write.model_copy(update={"mode": "merge", "keys": ["id"]})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write})


async def load_in_order(zone: Zone) -> None:
    for ref in zone.held:
        paths = [file.path for file in zone.collector.batches.read(ref)]
        await zone.landing.run(*paths, order_matters=True).load()
    zone.held = []


@pytest.mark.parametrize("merges", [True, False])
async def test_content_that_comes_again_after_another_is_loaded_where_the_order_matters(
    tmp_path: Path, merges: bool
) -> None:
    """A price file was sent as 10, 20, 10. An earlier version reported the third as `loaded`, and main kept 20."""
    zone = Zone(tmp_path, overwritten="load")
    if merges:
        merging(zone)
    for price in ("10", "20"):
        zone.landing.file("prices.csv", price)
        assert zone.settled() == [["prices.csv"]]
        await load_in_order(zone)
    zone.landing.file("prices.csv", "10")
    assert zone.settled() == ([["prices.csv"]] if merges else [])
    if merges:
        assert zone.list_files().loaded == [], "main contains 20"
        await load_in_order(zone)
    zone.list_files()
    assert zone.states()["prices.csv"] == ("loaded", "w-r3" if merges else "w-r1")


async def test_content_whose_path_a_batch_is_about_to_replace_is_judged_after_it(tmp_path: Path) -> None:
    zone = Zone(tmp_path, overwritten="load")
    merging(zone)
    zone.landing.file("prices.csv", "10")
    zone.settled()
    await load_in_order(zone)
    file = zone.landing.file("prices.csv", "20")
    zone.settled()
    branch, selected = await (run := zone.landing.run(str(file), order_matters=True)).write()
    zone.landing.file("prices.csv", "10")
    assert zone.settled() == [] and "with other content" in zone.states()["prices.csv"][1]
    assert run.publish(branch, selected).merged
    zone.held = []
    assert zone.names(zone.list_files()) == [["prices.csv"]]


async def test_loaded_content_under_a_new_name_is_refused_after_younger_loads(zone: Zone) -> None:
    """Prices of three days were 10, 20, 10. An earlier version reported the third as `loaded`, and main kept 20."""
    merging(zone)
    for day, price in (("d1.csv", "10"), ("d2.csv", "20")):
        zone.landing.file(day, price)
        assert zone.settled() == [[day]]
        await load_in_order(zone)
    zone.landing.file("d3.csv", "10")
    zone.list_files()
    listed = zone.list_files(after=60)
    assert listed.batches == [] and len(listed.kept_out) == 1
    reason = listed.kept_out[0].reason
    assert "which run w-r1 loaded" in reason and "Run w-r2 loaded other content" in reason
    assert "`arrivals PIPELINE --load FILE --over-younger`" in reason
    zone.landing.file("d4.csv", "40")
    assert zone.settled() == [["d4.csv"]], "others go on"
    await load_in_order(zone)
    assert zone.list_files(after=700).kept_out == [], "people are told once"
    path = str(zone.landing.path / "d3.csv")
    planned = zone.collector.plan_load(zone.pipeline, PlanLoadInput(pipeline=TEXT, paths=[path]))
    assert planned.batch and planned.files[0].may_be_older and "only --over-younger" in planned.files[0].reason
    zone.held = [planned.batch]
    assert zone.list_files().loaded == [], "the batch waits for its run"
    await zone.landing.run(path, order_matters=True, over_younger=True).load()
    assert zone.list_files().loaded == [planned.batch.id]


async def test_loaded_content_under_a_new_name_waits_for_batches_before_it(zone: Zone) -> None:
    merging(zone)
    zone.landing.file("d1.csv", "10")
    zone.settled()
    await load_in_order(zone)
    zone.landing.file("d2.csv", "20")
    zone.list_files(after=1)
    zone.landing.file("d3.csv", "10")
    assert zone.settled() == [["d2.csv"]]
    assert zone.list_files(after=60).batches == [] and zone.states()["d3.csv"][0] == "waiting"
    await load_in_order(zone)
    assert len(zone.list_files().kept_out) == 1 and zone.states()["d3.csv"][0] == "refused"


async def test_a_copy_is_loaded_already_where_nothing_younger_came(zone: Zone) -> None:
    merging(zone)
    zone.landing.file("d1.csv", "10")
    zone.settled()
    await load_in_order(zone)
    zone.landing.file("d2.csv", "10")
    assert zone.settled() == [] and zone.states()["d2.csv"] == ("loaded", "w-r1")


async def test_a_file_of_which_main_holds_a_partition_is_refused(zone: Zone) -> None:
    file = zone.landing.file("a.csv", "1")
    await zone.landing.run(str(file), scope=LoadScope(content="2018-01")).load()
    assert zone.settled() == []
    status, reason = zone.states()["a.csv"]
    assert status == "refused" and "for 2018-01 into t.x" in reason
