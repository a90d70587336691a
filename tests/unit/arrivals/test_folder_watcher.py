"""Watched folders: the ones that exist, and the zones that a path concerns."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from watchfiles import Change

from runtime.arrivals.notifications import folders
from runtime.arrivals.notifications.folders import Folders, FolderWatcher, folders_of, identify, zones_above
from sluice.arrivals.notified_zones import NotifiedZone, NotifiedZones


def test_a_path_concerns_the_zones_of_every_folder_above_it() -> None:
    zones: Folders = {"/in": {("all", ())}, "/in/orders": {("orders", ())}, "/in/orders2": {("other", ())}}
    assert zones_above(zones, ["/in/orders/2026/a.csv", "/in/b.csv"]) == {
        "all": {"/in/orders/2026/a.csv", "/in/b.csv"},
        "orders": {"/in/orders/2026/a.csv"},
    }
    assert zones_above(zones, ["/in/orders", "/inside/a.csv", "/a.csv", "a.csv"]) == {"all": {"/in/orders"}}


@pytest.mark.parametrize(
    ("pattern", "path", "is_listed"),
    [
        ("", "a.csv", True),
        ("", "2026/11/a.csv", True),
        ("", ".sluice/arrivals/1.sqlite-journal", False),
        ("", "2026/_temporary/a.csv", False),
        ("", "day=1/_x=2/a.csv", True),
        ("*.csv", "a.csv", True),
        ("*.csv", "a.txt", False),
        ("*.csv", "folder.csv/a.txt", True),
        ("*/*.csv", "2026", True),
        ("*/*.csv", "a.txt", False),
        ("*/*.csv", "2026/11", False),
        ("20*/**/*.csv", "2026/11/12", True),
        ("20*/**/*.csv", "1999/11", False),
        ("20*/**/*.csv", "2026/11/a.csv", True),
    ],
)
def test_a_path_that_no_listing_reads_concerns_nobody(tmp_path: Path, pattern: str, path: str, is_listed: bool) -> None:
    file = tmp_path / path
    if file.suffix:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    else:
        file.mkdir(parents=True)
    zone = NotifiedZone("zone", f"{tmp_path}/{pattern}".rstrip("/"))
    zones = folders_of(NotifiedZones(frozenset([zone])))
    assert list(zones) == [str(tmp_path)]
    assert set(zones_above(zones, [str(file)])) == ({"zone"} if is_listed else set())


def test_what_workers_write_themselves_is_no_arrival(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    requested: list[Any] = []
    watcher = FolderWatcher(dict, requested.append, threading.Event(), [str(tmp_path / "link")])
    zones: Folders = {str(tmp_path): {("zone", ())}}
    stated = {"zone": (str(tmp_path), "/by/a/link")}
    watcher._take(
        zones, stated, [(Change.added, str(home / "arrivals" / "1.sqlite")), (Change.modified, str(home / "x"))]
    )
    assert requested == []
    watcher._take(zones, stated, [(Change.added, str(tmp_path / "homes.csv"))])
    assert requested == [{"zone": {"/by/a/link/homes.csv"}}], "as the zone spells it"


def test_of_one_file_its_folder_is_watched_and_of_a_wide_pattern_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id")
    zones = [NotifiedZone("file", f"{tmp_path}/a.csv"), NotifiedZone("home", "/home/*/landing/*.csv")]
    zones += [NotifiedZone("root", "/*/x"), NotifiedZone("folder", "/landing"), NotifiedZone("bucket", "s3://b/*")]
    folders = folders_of(NotifiedZones(frozenset(zones)))
    assert folders == {str(tmp_path): {("file", ("a.csv",))}, "/landing": {("folder", ())}}
    assert [zone.is_too_wide for zone in zones] == [False, True, True, False, False]
    assert zones_above(folders, [str(tmp_path / "b.csv")]) == {}
    assert zones_above(folders, [str(tmp_path / "a.csv")]) == {"file": {str(tmp_path / "a.csv")}}


def test_only_folders_that_are_there_are_watched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    wanted = [str(tmp_path / name) for name in ("missing", "file", "link", "null\0")]
    present = identify([*wanted, "/"])
    assert [(name, real) for name, (real, _, _) in present.items()] == [(str(tmp_path / "link"), str(tmp_path))]


def test_a_folder_that_cannot_be_read_is_left_out_and_its_zone_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()
    asked: list[bool] = []

    def watch(*_: str, ignore_permission_denied: bool, **__: Any) -> Iterator[set[Any]]:
        asked.append(ignore_permission_denied)
        if not ignore_permission_denied:
            raise PermissionError("denied")
        stop.set()
        yield set()

    monkeypatch.setattr(folders, "watch", watch)
    requested: list[Any] = []
    FolderWatcher(lambda: {str(tmp_path): {("zone", ())}}, requested.append, stop).run()
    assert (asked, requested) == ([False, True], [{"zone": set()}])
    assert caplog.messages == ["a folder below a landing zone cannot be read, and is not watched: denied"]
