"""A listing of a landing zone with unusable files, odd names, links, or a damaged memory: other files still load."""

import os
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from lakehouse.arrivals import identify_arrived
from lakehouse.arrivals.zone_files import MarkedFile
from lakehouse.source_files import find_files
from lakehouse.source_files.arriving import ArrivingFile
from sluice.contracts.run_request import InputFile
from sluice.errors import InvalidInput, ManifestUnreadable, ServiceUnavailable
from sluice.pipeline.source import Source
from tests.harness.memory_zone import Zone

VARIABLE_NUMBER = 9
"""The number of `SQLITE_LIMIT_VARIABLE_NUMBER` in sqlite3.h."""


def test_one_file_that_cannot_be_loaded_stops_no_other_one(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    source = zone.pipeline.write.source
    assert source
    write = zone.pipeline.write.model_copy(update={"source": source.model_copy(update={"format": "parquet"})})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write})
    zone.landing.file("a.parquet", "PAR1, cut off")
    zone.landing.file("b.parquet", "PAR1 and enough bytes PAR1")
    assert zone.settled() == [["b.parquet"]]
    status, why = zone.states()["a.parquet"]
    assert status == "refused" and "it is truncated" in why
    zone.landing.file("a.parquet", "PAR1 now it is whole, too PAR1")
    assert zone.settled() == [["a.parquet"]]


def test_a_name_that_is_not_in_utf_8_is_shown_and_stops_no_file(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    (zone.landing.path / os.fsdecode(b"caf\xe9.csv")).write_text("2")
    assert zone.settled() == [["a.csv"]]
    assert zone.states()["caf\\xe9.csv"] == ("ignored", "its name is not in UTF-8: rename it")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("10:00.csv", "Spark cannot open a file with a colon in its name: rename it, for example to '10-00.csv'"),
        ("day=/a.csv", "the folder 'day=' is read as a column, but has no value: rename it"),
        ("=x/a.csv", "the folder '=x' is read as a column, but has no name: rename it, for example to x"),
        ("city=Caf%E9/a.csv", "'city=Caf%E9' is read as a column, but its encoded bytes are not UTF-8: rename it"),
        ("b%C3=1/a.csv", "the folder 'b%C3=1' is read as a column, but its encoded bytes are not UTF-8: rename it"),
    ],
)
def test_a_name_that_spark_cannot_open_is_refused_alone(zone: Zone, name: str, reason: str) -> None:
    odd = zone.landing.file(name, "1")
    zone.landing.file("b.csv", "2")
    zone.list_files()
    settled = zone.list_files(after=60)
    assert zone.names(settled) == [["b.csv"]]
    assert [(file.path, reason in file.reason) for file in settled.kept_out] == [(str(odd), True)]
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        find_files(Source(path=str(zone.landing.path), format="csv"))


def test_folders_may_lie_deep(zone: Zone) -> None:
    folder = zone.landing.path
    for _ in range(500):
        folder = folder / "d"
        folder.mkdir()
    (folder / "a.csv").write_text("1")
    assert zone.settled() == [["a.csv"]]


def test_a_file_that_was_refused_is_tried_again_after_a_while(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store may have refused it until somebody got a permission."""
    zone.landing.file("a.csv", "1")
    zone.list_files()

    def refuse(*_: Any) -> list[InputFile]:
        raise InvalidInput("a.csv cannot be read: AccessDenied")

    with monkeypatch.context() as patched:
        patched.setattr(identify_arrived, "find_files", refuse)
        assert len(zone.list_files(after=60).kept_out) == 1
        assert zone.list_files(after=700).kept_out == [], "people are told once"
    assert zone.list_files(after=5).batches == []
    assert zone.names(zone.list_files(after=700)) == [["a.csv"]]


def test_a_page_of_the_memory_that_is_damaged_stops_no_later_listing(zone: Zone) -> None:
    for number in range(300):
        zone.landing.file(f"{number}.csv", str(number))
    zone.list_files()
    (file,) = (zone.home / "arrivals").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(ServiceUnavailable, match="was damaged; Sluice rebuilds it"):
        zone.list_files()
    assert zone.list_files().counts == {"waiting": 300}


def test_a_link_that_leads_nowhere_stops_no_file(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    (zone.landing.path / "gone.csv").symlink_to("nowhere")
    assert zone.settled() == [["a.csv"]]


def test_a_lost_or_altered_batch_stops_the_zone(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    path = Path(zone.held[0].location.removeprefix("file://"))
    path.write_text("[1, 2")
    with pytest.raises(ManifestUnreadable, match="was altered"):
        zone.list_files()
    path.unlink()
    with pytest.raises(ManifestUnreadable, match="is missing"):
        zone.list_files()


def test_a_folder_that_is_not_there_is_a_problem_and_a_pattern_that_matches_nothing_is_none(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    zone.landing.path.rmdir()
    with pytest.raises(InvalidInput, match="there is no folder"):
        zone.list_files()
    assert Zone(tmp_path, **{"from": f"{tmp_path}/land*/*.csv"}).list_files().batches == []


def test_names_that_could_be_patterns_are_files_like_others(zone: Zone) -> None:
    for name in ("a[1].csv", "b*.csv", "c d.csv", "é.csv"):
        zone.landing.file(name, name)
    assert sorted(zone.settled()[0]) == sorted(["a[1].csv", "b*.csv", "c d.csv", "é.csv"])


@pytest.mark.parametrize("pattern", ["", "/*"])
def test_a_link_to_itself_stops_no_file(tmp_path: Path, pattern: str) -> None:
    zone = Zone(tmp_path, **{"from": f"{tmp_path}/landing{pattern}"})
    zone.landing.file("a.csv", "1")
    (zone.landing.path / "loop").symlink_to("loop")
    assert zone.settled() == [["a.csv"]]


def test_a_sqlite_that_takes_few_parameters_is_enough(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite before 3.32 accepts 999 parameters."""
    if sys.version_info < (3, 11):
        pytest.skip("Python cannot lower the limit")
    connect = sqlite3.connect

    def limited(*args: Any, **more: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(*args, **more)
        database.setlimit(VARIABLE_NUMBER, 999)
        return database

    monkeypatch.setattr(sqlite3, "connect", limited)
    memory = zone.collector.memory("p")
    memory.record_listing([ArrivingFile(f"/in/{number}", 1, "1") for number in range(1500)], 5.0)
    assert len(memory.waiting(2000)) == 1500
    for number, batch in ((1, "held"), (2, "gone")):
        memory.mark([MarkedFile(f"/in/{number}", 5.0, "in a batch", batch)])
    memory.release_batches(["held", *map(str, range(1500))], [], [])
    assert memory.counts() == {"in a batch": 1, "waiting": 1499}
