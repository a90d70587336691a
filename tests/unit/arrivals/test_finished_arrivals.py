"""Loaded files are moved out of the landing zone: real files, main's history in memory, and a clock of the tests."""

import errno
import os
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

from lakehouse.arrivals.finisher import ArrivalFinisher
from lakehouse.source_files import moving
from lakehouse.source_files.moving import Unmovable, local_state, move_file, names_at
from lakehouse.source_files.paths import may_list, path_below
from runtime.arrivals.deployed_zones import DeployedLandingZones
from runtime.pipeline.pipeline_input import resolve_arrival
from sluice.contracts.arrivals import FinishArrivalsInput, FinishArrivalsResult
from sluice.deployment.files import read_files
from sluice.deployment.plan import DeploySet
from sluice.errors import InputChanged, InvalidPipeline
from sluice.pipeline.arrival import Arrival
from sluice.settings import Settings
from tests.harness.loading_run import roll_back
from tests.harness.memory_zone import TEXT, Zone

IDENTITY = "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"  # of the content "1"


class MovingZone(Zone):
    """A landing zone that moves its loaded files away."""

    def __init__(self, folder: Path, **arrival: Any) -> None:
        self.moved = folder / "moved"
        super().__init__(folder, after="move", move_to=str(self.moved), **arrival)

    def finish(self) -> FinishArrivalsResult:
        given = FinishArrivalsInput(pipeline=TEXT, held=self.held)
        return ArrivalFinisher(self.collector).finish(self.pipeline, given, lambda _: None)

    async def publish(self, *names: str) -> None:
        """Publish the files that have settled, and list the zone once more."""
        assert self.settled() == [[*names]]
        await self.load()
        self.list_files()

    def files(self) -> dict[str, str]:
        """Return every file of both folders, including hidden ones, with its content."""
        both = [path for folder in (self.landing.path, self.moved) for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.landing.path.parent)): path.read_text() for path in both}


@pytest.fixture
def zone(tmp_path: Path) -> MovingZone:
    return MovingZone(tmp_path)


async def test_a_file_is_moved_when_main_holds_it_and_not_before(zone: MovingZone) -> None:
    zone.landing.file("day/a.csv", "1")
    assert zone.settled() == [["a.csv"]]
    assert (zone.list_files().to_finish, zone.finish().finished) == (0, 0)
    await zone.load()
    assert zone.list_files().to_finish == 1
    assert zone.finish() == FinishArrivalsResult(finished=1)
    assert zone.files() == {"moved/day/a.csv": "1"}
    assert (zone.list_files().to_finish, zone.finish().finished) == (0, 0)
    assert zone.states() == {"a.csv": ("moved", f"to {zone.moved}/day/a.csv; w-r1")}


async def test_the_same_content_again_is_moved_onto_itself_and_other_content_beside_it(tmp_path: Path) -> None:
    zone = MovingZone(tmp_path, overwritten="load")
    zone.landing.file("a.csv", "1")
    await zone.publish("a.csv")
    zone.finish()
    zone.landing.file("a.csv", "1")
    assert zone.settled() == [] and zone.finish().finished == 1
    assert zone.files() == {"moved/a.csv": "1"}
    zone.landing.file("a.csv", "2")
    await zone.publish("a.csv")
    assert zone.finish().finished == 1
    (other,) = zone.files().keys() - {"moved/a.csv"}
    assert zone.files() == {"moved/a.csv": "1", other: "2"} and other.startswith("moved/a.")
    zone.landing.file("a.csv", "2")
    assert zone.settled() == [] and zone.finish().finished == 1
    assert zone.files() == {"moved/a.csv": "1", other: "2"}


async def test_files_behind_a_symbolic_link_stay_where_they_are(zone: MovingZone, tmp_path: Path) -> None:
    """They may belong to an archive, or to the folder that files are moved to."""
    assert zone.pipeline.arrival
    follows = zone.pipeline.arrival.model_copy(update={"follow_links": True})
    zone.pipeline = zone.pipeline.model_copy(update={"arrival": follows})
    archive = tmp_path / "archive"
    for folder in (archive, zone.moved):
        folder.mkdir()
        (folder / f"{folder.name}.csv").write_text(folder.name)
        (zone.landing.path / folder.name).symlink_to(folder)
    zone.landing.file("day/a.csv", "1")
    zone.settled()
    await zone.load()
    zone.list_files()
    done = zone.finish()
    assert (done.finished, done.failed) == (1, 2) and "its folder is behind a symbolic link" in done.problem
    assert (archive / "archive.csv").exists() and (zone.moved / "moved.csv").exists()
    assert (zone.moved / "day" / "a.csv").exists()


async def test_a_copy_in_the_same_batch_is_moved_too(zone: MovingZone) -> None:
    zone.landing.file("a.csv", "1")
    zone.landing.file("b.csv", "1")
    await zone.publish("a.csv")
    assert zone.finish().finished == 2
    assert zone.files() == {"moved/a.csv": "1", "moved/b.csv": "1"}


async def test_a_file_that_is_overwritten_before_its_move_stays(zone: MovingZone) -> None:
    file = zone.landing.file("a.csv", "1")
    await zone.publish("a.csv")
    file.write_text("2")
    assert zone.finish().finished == 0
    assert zone.files() == {"landing/a.csv": "2"}


async def test_a_file_whose_run_was_rolled_back_is_not_moved(zone: MovingZone) -> None:
    zone.landing.file("a.csv", "1")
    await zone.publish("a.csv")
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    assert zone.finish().finished == 0
    (shown,) = zone.collector.memory("p").files(None, "", 10)
    assert shown.after == "not moved: its run was rolled back" and zone.files() == {"landing/a.csv": "1"}


async def test_a_file_of_a_held_batch_is_not_moved(zone: MovingZone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    held = list(zone.held)
    await zone.load()
    zone.list_files()
    zone.held = held
    assert zone.finish().finished == 0 and zone.files() == {"landing/a.csv": "1"}


async def test_what_cannot_be_moved_is_named_and_tried_again(zone: MovingZone) -> None:
    zone.landing.file("a.csv", "1")
    await zone.publish("a.csv")
    zone.moved.write_text("in the way")
    failed = zone.finish()
    assert failed.failed == 1 and failed.problem.startswith("not moved: ") and "moved" in failed.problem
    assert not failed.has_more, "it is tried later"
    (shown,) = zone.collector.memory("p").files(None, "", 10)
    assert shown.after == failed.problem
    zone.moved.unlink()
    assert (zone.list_files().to_finish, zone.list_files().put_off) == (0, 1)
    assert zone.list_files(after=300).to_finish == 1
    assert zone.finish().finished == 1 and zone.list_files().put_off == 0


async def test_a_target_that_a_link_leads_into_the_zone_is_refused(zone: MovingZone) -> None:
    zone.moved.symlink_to(zone.landing.path)
    with pytest.raises(InvalidPipeline, match="is in the landing zone"):
        zone.finish()


async def test_a_worker_that_lost_its_memory_moves_what_is_left(zone: MovingZone) -> None:
    for name in ("a.csv", "b.csv"):
        zone.landing.file(name, name)
    await zone.publish("a.csv", "b.csv")
    (zone.moved / "a.csv").parent.mkdir()
    os.link(zone.landing.path / "a.csv", zone.moved / "a.csv")  # left by a worker that was killed in the middle
    for file in (zone.home / "arrivals").iterdir():
        file.unlink()
    assert zone.settled() == [] and zone.finish().finished == 2
    assert zone.files() == {"moved/a.csv": "a.csv", "moved/b.csv": "b.csv"}


class Move:
    """One file, and its move."""

    def __init__(self, folder: Path) -> None:
        self.file, self.target = folder / "in" / "a.csv", folder / "out" / "a.csv"
        self.file.parent.mkdir()
        self.file.write_text("1")
        self.state = local_state(self.file.stat())

    def run(self) -> str:
        return move_file(str(self.file), self.state, IDENTITY, str(self.target), lambda: None)

    def files(self) -> dict[str, str]:
        paths = [path for path in self.file.parent.parent.rglob("*") if path.is_file()]
        return {f"{path.parent.name}/{path.name}": path.read_text() for path in paths}


@pytest.fixture
def move(tmp_path: Path) -> Move:
    return Move(tmp_path)


@pytest.fixture(params=["links", "copies"])
def either(request: pytest.FixtureRequest, move: Move, monkeypatch: pytest.MonkeyPatch) -> Move:
    """A move within a file system, and a move from one file system to another."""
    if request.param == "copies":
        link = os.link

        def across(source: Path, target: Path) -> None:
            if source == move.file:
                raise OSError(errno.EXDEV, "Invalid cross-device link", str(source))
            link(source, target)

        monkeypatch.setattr("os.link", across)
    return move


def test_a_move_leaves_one_file(either: Move) -> None:
    written = either.file.stat().st_mtime_ns
    assert either.run() == str(either.target)
    assert either.files() == {"out/a.csv": "1"} and either.target.stat().st_mtime_ns == written
    with pytest.raises(InputChanged):
        either.run()


def test_no_file_is_overwritten(either: Move) -> None:
    either.target.parent.mkdir()
    either.target.write_text("2")
    _, beside = names_at(str(either.target), IDENTITY)
    Path(beside).write_text("3")
    with pytest.raises(Unmovable, match="other files have its names"):
        either.run()
    assert either.files() == {"in/a.csv": "1", "out/a.csv": "2", f"out/{Path(beside).name}": "3"}
    Path(beside).write_text("1")
    assert either.run() == beside
    assert either.files() == {"out/a.csv": "2", f"out/{Path(beside).name}": "1"}


def test_a_file_that_is_replaced_in_the_middle_is_not_lost(either: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    take_away = moving._take_away

    def late(source: Path, now: os.stat_result, target: Path) -> None:
        new = source.with_name("new")
        new.write_text("2, and longer")
        new.rename(source)
        take_away(source, now, target)

    monkeypatch.setattr(moving, "_take_away", late)
    with pytest.raises(InputChanged):
        either.run()
    assert either.files() == {"in/a.csv": "2, and longer", "out/a.csv": "1"}


@pytest.mark.parametrize("is_mounted_twice", [False, True])
def test_a_file_is_not_removed_if_its_target_is_the_file_itself(
    either: Move, monkeypatch: pytest.MonkeyPatch, is_mounted_twice: bool
) -> None:
    either.target.parent.symlink_to(either.file.parent)
    if is_mounted_twice:
        monkeypatch.setattr(Path, "samefile", lambda *_: False)
    with pytest.raises(Unmovable, match="is the same file under another name"):
        either.run()
    assert (either.file.read_text(), [*either.file.parent.iterdir()]) == ("1", [either.file])
    assert local_state(either.file.stat()) == either.state, "the file would have to settle again"


def test_a_symbolic_link_stays(move: Move, tmp_path: Path) -> None:
    move.file.rename(tmp_path / "elsewhere.csv")
    move.file.symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(Unmovable, match="symbolic link"):
        move.run()
    assert move.file.is_symlink()


@pytest.mark.parametrize(
    ("path", "folder", "listed"),
    [
        ("/in", "/in", True),
        ("/in", "/in/loaded", True),
        ("/in", "/in/_loaded", False),
        ("/in", "/in/.loaded/orders", False),
        ("/in", "/in-loaded", False),
        ("/in/orders", "/in", True),
        ("/in/*.csv", "/in/loaded", False),
        ("/in/*.csv", "/in", True),
        ("/in/*", "/in/loaded", True),
        ("/in/*/*.csv", "/in/loaded", True),
        ("/in/**/*.csv", "/in/loaded/orders", True),
        ("/in/**/*.csv", "/in/_loaded", False),
        ("/in/2026-*/*.csv", "/in/loaded", False),
        ("s3://b/in/", "s3a://b/in/loaded", True),
        ("s3://b/in/", "s3://b/out/", False),
        ("s3://b/in/", "s3://c/in/", False),
        ("s3://b", "s3://b/out", True),
    ],
)
def test_whether_a_listing_may_have_moved_files(path: str, folder: str, listed: bool) -> None:
    assert may_list(path, folder) is listed


def test_the_path_below_a_zone_is_kept() -> None:
    assert path_below("s3://b/in/", "s3://b/in/day=1/a.csv") == "day=1/a.csv"
    assert path_below("s3a://b/in/*/x/*.csv", "s3a://b/in/eu/x/a.csv") == "eu/x/a.csv"
    assert path_below("/in/a.csv", "/in/a.csv") == "a.csv"
    assert path_below("/in", "/in/a b.csv") == "a b.csv"


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ({"from": "in/", "after": "tag"}, "is not in S3: use keep or move"),
        ({"from": "in/", "after": "move"}, "needs `move_to`"),
        ({"from": "in/", "move_to": "out/"}, "goes with `after: move`"),
        ({"from": "in/", "after": "move", "move_to": "s3://b/out"}, "from folder to folder and from S3 to S3"),
        ({"from": "gs://b/in", "after": "move", "move_to": "gs://b/out"}, "from folder to folder and from S3 to S3"),
        ({"from": "s3://b/in", "after": "move", "move_to": "s3://b/x/../in"}, "is not a folder"),
        ({"from": "in/", "after": "move", "move_to": "out/*"}, "is not a folder"),
        ({"from": "in/", "after": "delete"}, "'keep', 'tag' or 'move'"),
    ],
)
def test_what_cannot_be_done_is_refused(stated: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Arrival.model_validate(stated)


def test_a_target_in_the_zone_is_refused_by_its_absolute_path(tmp_path: Path) -> None:
    stated = Arrival.model_validate({"from": "in/", "after": "move", "move_to": f"{tmp_path}/in/loaded"})
    with pytest.raises(InvalidPipeline, match="would be in the landing zone in/ again"):
        resolve_arrival(stated, tmp_path)
    beside = Arrival.model_validate({"from": "in/", "after": "move", "move_to": "in/../out"})
    assert resolve_arrival(beside, tmp_path).from_ == f"{tmp_path}/in"


def test_a_deploy_refuses_what_would_be_listed_again(tmp_path: Path) -> None:
    text = """\
name: p
write: {source: {format: csv}}
tables: [t.x]
arrival: {from: in/, after: move, move_to: in/loaded/}
"""
    (file,) = read_files({"p.yml": text})
    zones = DeployedLandingZones(cast(Any, None), Settings().installation, DeploySet("s", "/"), tmp_path)
    with pytest.raises(InvalidPipeline, match=r"p\.yml: arrival: the files moved to in/loaded/ would be"):
        zones.wanted(file)
