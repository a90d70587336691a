"""Files of a landing zone that a person names: rolled-back or overwritten files are loaded by the zone's rules."""

import os
import time
from pathlib import Path

import pytest

from lakehouse.input import loaded_files
from sluice.contracts.arrivals import ROLLED_BACK
from sluice.contracts.zone_loads import LoadPlan, PlanLoadInput
from tests.harness.loading_run import roll_back
from tests.harness.memory_zone import TEXT, Zone


def plan(zone: Zone, *names: str) -> LoadPlan:
    paths = [str(zone.landing.path / name) for name in names]
    return zone.collector.plan_load(zone.pipeline, PlanLoadInput(pipeline=TEXT, held=zone.held, paths=paths))


def reasons(planned: LoadPlan) -> dict[str, tuple[bool, str]]:
    return {Path(file.path).name: (file.is_loadable, file.reason) for file in planned.files}


async def test_a_file_that_was_rolled_back_or_overwritten_is_loaded_by_name(zone: Zone) -> None:
    for name in "ab":
        zone.landing.file(f"{name}.csv", name)
    zone.settled()
    await zone.load()
    zone.list_files()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("c.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("c.csv", "2")
    assert zone.settled() == []
    planned = plan(zone, "a.csv", "b.csv", "c.csv")
    assert reasons(planned) == {
        "a.csv": (True, "run w-r1 loaded it, and was rolled back"),
        "b.csv": (True, "run w-r1 loaded it, and was rolled back"),
        "c.csv": (True, "overwritten: run w-r2 loaded this path with other content, and its rows stay"),
    }
    assert planned.batch and planned.batch.files == 3
    assert zone.states()["a.csv"] == ("loaded", f"w-r1{ROLLED_BACK}"), "a plan changes nothing"
    zone.held = [planned.batch]
    assert zone.list_files().loaded == [], "a load that was rolled back is none"
    zone.list_files(after=60)
    assert set(zone.states().values()) == {("in a batch", planned.batch.id)}
    await zone.load()
    zone.list_files()
    assert {state for state, _ in zone.states().values()} == {"loaded"}


async def test_what_cannot_be_loaded_by_name_is_said_of_each_file(zone: Zone, tmp_path: Path) -> None:
    zone.landing.file("loaded.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("held.csv", "2")
    zone.settled()
    for name, content in {"empty.csv": "", "new.csv.tmp": "3", "10:00.csv": "4"}.items():
        zone.landing.file(name, content)
    (tmp_path / "outside.csv").write_text("5")
    (zone.landing.path / "link.csv").symlink_to(tmp_path / "outside.csv")
    zone.settled()
    zone.landing.file("new.csv", "6")
    names = ["loaded.csv", "held.csv", "empty.csv", "new.csv.tmp", "10:00.csv", "link.csv", "new.csv", "missing.csv"]
    planned = plan(zone, *names)
    assert planned.batch is None and not any(loadable for loadable, _ in reasons(planned).values())
    expected = {
        "loaded.csv": "main contains it: run w-r1 loaded it",
        "held.csv": f"batch {zone.held[0].id} contains it",
        "empty.csv": "it is empty",
        "new.csv.tmp": "an unfinished file",
        "10:00.csv": "a colon in its name",
        "link.csv": "out of the landing zone",
        "new.csv": "it settles for 60 s more",
        "missing.csv": "it is not in the landing zone",
    }
    for name, reason in expected.items():
        assert reason in reasons(planned)[name][1], name


def test_copies_are_loaded_once_and_files_that_wait_are_loaded_at_once(tmp_path: Path) -> None:
    zone = Zone(tmp_path, batch={"wait": "10h"})
    zone.landing.file("a.csv", "1")
    zone.landing.file("copy.csv", "1")
    zone.list_files()
    zone.now += 30
    zone.landing.file("later.csv", "2")
    zone.list_files()
    assert zone.list_files(after=30).batches == []
    planned = plan(zone, "a.csv", "copy.csv", "later.csv")
    assert [loadable for loadable, _ in reasons(planned).values()] == [True, True, False]
    assert planned.batch and planned.batch.files == 1


def merge(zone: Zone) -> None:
    """Make the order of loads matter."""
    write = zone.pipeline.write.model_copy(update={"mode": "merge", "keys": ["id"]})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write})


@pytest.mark.parametrize("is_latest_sent", [True, False])
async def test_a_file_that_was_sent_again_with_all_others_is_loaded_already(
    zone: Zone, monkeypatch: pytest.MonkeyPatch, is_latest_sent: bool
) -> None:
    """The zone compares it with the latest loaded file, which nobody names."""
    monkeypatch.setattr(loaded_files, "is_intact", lambda *_: False)  # later loads may have replaced its rows
    merge(zone)
    for name in "ab":
        zone.landing.file(f"{name}.csv", name)
        zone.settled()
        await zone.load()
    zone.list_files()
    later = time.time() + 60
    for name in "ab" if is_latest_sent else "a":
        os.utime(zone.landing.path / f"{name}.csv", (later, later))
    assert zone.settled() == []
    assert (zone.states()["a.csv"] == ("loaded", "w-r1")) == is_latest_sent
    (planned,) = plan(zone, "a.csv").files
    assert (planned.is_loadable, planned.may_be_older) == (not is_latest_sent, not is_latest_sent)
    assert not is_latest_sent or planned.reason == "main contains it: run w-r1 loaded it"


@pytest.mark.parametrize("merges", [True, False])
async def test_ignored_content_may_be_older_than_what_was_loaded_since(tmp_path: Path, merges: bool) -> None:
    zone = Zone(tmp_path, overwritten="ignore", on_failure="pause")
    if merges:
        merge(zone)
    for name, content in (("p.csv", "10"), ("p.csv", "11"), ("q.csv", "20")):
        zone.landing.file(name, content)
        zone.settled()
        await zone.load()
    (planned,) = plan(zone, "p.csv").files
    assert planned.is_loadable and planned.may_be_older == merges
    assert ("older than those of" in planned.reason and "only --over-younger loads it" in planned.reason) == merges
