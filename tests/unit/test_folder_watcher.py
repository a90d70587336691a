"""Folders that are watched: which of them are there, and which zones a path concerns."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.notifications import folders
from runtime.notifications.folders import FolderWatcher, identify, zones_above


def test_a_path_concerns_the_zones_of_every_folder_above_it() -> None:
    zones = {"/in": {"all"}, "/in/orders": {"orders"}, "/in/orders2": {"other"}}
    assert zones_above(zones, ["/in/orders/2026/a.csv", "/in/b.csv"]) == {"all", "orders"}
    assert zones_above(zones, ["/in/orders", "/inside/a.csv", "/a.csv", "a.csv"]) == {"all"}


def test_only_folders_that_are_there_are_watched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    wanted = [str(tmp_path / name) for name in ("missing", "file", "link", "null\0")]
    present = identify([*wanted, "/"])
    assert [(name, real) for name, (real, _, _) in present.items()] == [(str(tmp_path / "link"), str(tmp_path))]


def test_a_folder_that_cannot_be_read_is_left_out_and_its_zone_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    requested: list[set[str]] = []
    FolderWatcher(lambda: {str(tmp_path): {"zone"}}, requested.append, stop).run()
    assert (asked, requested) == ([False, True], [{"zone"}])
