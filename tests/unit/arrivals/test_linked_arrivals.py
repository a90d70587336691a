"""Symbolic links in a landing zone: files outside of the zone are not read, unless the pipeline permits it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakehouse.arrivals import identify_arrived
from lakehouse.source_files import check_unchanged, find_files
from lakehouse.source_files.arriving import find_arriving, list_arriving
from lakehouse.source_files.identify import describe
from sluice.contracts.run_request import InputFile
from sluice.errors import InputChanged
from sluice.pipeline.source import Source
from tests.harness.memory_zone import Zone


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder next to the zone, with a token."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "token.csv").write_text("id\nsecret\n")
    return folder


def _file(landing: Path, outside: Path) -> Path:
    (landing / "a.csv").symlink_to(outside / "token.csv")
    return landing / "a.csv"


def _folder(landing: Path, outside: Path) -> Path:
    (landing / "a").symlink_to(outside)
    return landing / "a"


def _chain(landing: Path, outside: Path) -> Path:
    (outside.parent / "between").symlink_to(outside)
    (landing / "a.csv").symlink_to(outside.parent / "between" / "token.csv")
    return landing / "a.csv"


def _in_a_folder(landing: Path, outside: Path) -> Path:
    (landing / "deep" / "deeper").mkdir(parents=True)
    (landing / "deep" / "deeper" / "a.csv").symlink_to(Path("../../..") / "outside" / "token.csv")
    return landing / "deep" / "deeper" / "a.csv"


def _folder_above(landing: Path, outside: Path) -> Path:
    (landing / "a").symlink_to("..")
    return landing / "a"


def _same_beginning(landing: Path, outside: Path) -> Path:
    """Link to a folder outside whose name begins with the zone's name."""
    beside = landing.with_name(f"{landing.name}-private")
    outside.rename(beside)
    (landing / "a.csv").symlink_to(beside / "token.csv")
    return landing / "a.csv"


_LINKS = [_file, _folder, _chain, _in_a_folder, _folder_above, _same_beginning]


@pytest.mark.parametrize("make", _LINKS)
def test_a_link_that_leads_outside_is_refused_and_people_are_notified(
    zone: Zone, outside: Path, make: Callable[[Path, Path], Path]
) -> None:
    link = make(zone.landing.path, outside)
    zone.landing.file("good.csv", "1")
    first = zone.list_files()
    assert [Path(file.path) for file in first.kept_out] == [link]
    assert "follow_links: true" in first.kept_out[0].reason
    later = zone.list_files(after=60)
    assert zone.names(later) == [["good.csv"]] and later.kept_out == [], "people are notified once"
    assert zone.list_files(after=7200).batches == []
    assert zone.states()[link.name][0] == "refused"


@pytest.mark.parametrize("pattern", ["", "/*.csv"])
@pytest.mark.parametrize("target", ["absent.csv", "a.csv"])
def test_a_link_that_leads_nowhere_is_refused_until_it_leads_to_a_file(
    tmp_path: Path, pattern: str, target: str
) -> None:
    """It leads to no file, or to itself."""
    zone = Zone(tmp_path, **{"from": f"{tmp_path}/landing{pattern}"})
    zone.landing.file("good.csv", "1")
    link = zone.landing.path / "a.csv"
    link.symlink_to(target)
    assert [(Path(file.path), "leads nowhere" in file.reason) for file in zone.list_files().kept_out] == [(link, True)]
    assert zone.states()["a.csv"][0] == "refused"
    named = find_arriving(str(zone.landing.path), [str(link)])
    assert named and "leads nowhere" in named[0].refused
    assert zone.names(zone.list_files(after=60)) == [["good.csv"]]
    link.unlink()
    zone.landing.file("day/b.csv", "2")
    link.symlink_to("day/b.csv")
    zone.list_files(after=60)
    assert zone.states()["a.csv"][0] != "refused"


@pytest.mark.parametrize("pattern", ["*.csv", "*/*.csv", "**", "*/../outside/*.csv"])
def test_a_pattern_leads_to_no_file_outside(tmp_path: Path, outside: Path, pattern: str) -> None:
    zone = Zone(tmp_path, **{"from": f"{tmp_path}/landing/{pattern}"})
    zone.landing.file("deep/good.csv", "1")
    for make in (_file, _folder):
        make(zone.landing.path, outside)
    zone.list_files()
    for names in zone.names(zone.list_files(after=60)):
        assert names == ["good.csv"]
    assert all(state == "refused" for name, (state, _) in zone.states().items() if name != "good.csv")


def test_links_inside_of_the_zone_and_to_the_zone_are_followed(tmp_path: Path, zone: Zone) -> None:
    file = zone.landing.file("day/a.csv", "1")
    (zone.landing.path / "today").symlink_to("day")
    (tmp_path / "way").symlink_to(zone.landing.path)
    assert len(zone.settled()[0]) == 1
    (tmp_path / "other").mkdir()
    other = Zone(tmp_path / "other", **{"from": str(tmp_path / "way")})
    assert len(other.settled()[0]) == 1
    assert [each.refused for each in list_arriving(str(file))] == [""]


def test_links_are_followed_where_the_pipeline_says_so(tmp_path: Path, outside: Path) -> None:
    zone = Zone(tmp_path, follow_links=True)
    _folder(zone.landing.path, outside)
    zone.landing.file("good.csv", "1")
    assert sorted(zone.settled()[0]) == ["good.csv", "token.csv"]


def test_a_refused_link_is_listed_again_when_the_rule_or_the_link_changes(zone: Zone, outside: Path) -> None:
    link = _file(zone.landing.path, outside)
    zone.list_files()
    assert zone.pipeline.arrival
    follows = zone.pipeline.arrival.model_copy(update={"follow_links": True})
    refuses = zone.pipeline
    zone.pipeline = zone.pipeline.model_copy(update={"arrival": follows})
    zone.list_files()
    assert zone.states()["a.csv"][0] == "waiting"
    zone.pipeline = refuses
    zone.list_files()
    assert zone.states()["a.csv"][0] == "refused"
    link.unlink()
    link.write_text("id\n1\n")
    assert zone.settled() == [["a.csv"]]


def test_a_notification_of_a_file_behind_a_link_leads_to_a_listing(zone: Zone, outside: Path) -> None:
    _folder(zone.landing.path, outside)
    named = str(zone.landing.path / "a" / "token.csv")
    assert find_arriving(str(zone.landing.path), [named]) is None
    zone.list_files()
    zone.list_files(files=[Path(named)])
    assert zone.list_files(after=60).batches == [] and zone.states().keys() == {"a"}


def test_a_file_that_becomes_a_link_before_it_is_identified_is_not_read(
    zone: Zone, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = zone.landing.file("a.csv", "id\nsecret\n")  # the same content: only the path differs
    zone.list_files()

    def find(*given: Any) -> list[InputFile]:
        if not file.is_symlink():
            now = file.stat()
            file.unlink()
            file.symlink_to(outside / "token.csv")
            assert now
        return find_files(*given)

    with monkeypatch.context() as patched:
        patched.setattr(identify_arrived, "find_files", find)
        assert zone.list_files(after=60).batches == []
    assert zone.list_files().batches == [] and zone.states()["a.csv"][0] == "refused"


def test_a_file_that_a_link_replaces_while_spark_reads_fails_the_attempt(zone: Zone, outside: Path) -> None:
    """A folder is swapped. Size, times and content of the file stay the same; only its path differs."""
    file = zone.landing.file("day/token.csv", "")
    shutil.copy2(outside / "token.csv", file)
    source = Source(path=str(file), format="csv")
    files = find_files(source)
    before = {str(file): describe(str(file)).state()}
    file.parent.rename(zone.landing.path.parent / "day")
    file.parent.symlink_to(zone.landing.path.parent / "day")
    with pytest.raises(InputChanged, match="was touched"):
        check_unchanged(files, source, states=before)
