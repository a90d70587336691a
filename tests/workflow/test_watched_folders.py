"""Folders of landing zones on a real Temporal server: a file written there has its zone listed."""

import asyncio
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from devstack.stack import ROOT
from tests.harness.notified_zone import NotifiedZones, notified_zones

pytestmark = pytest.mark.slow


@pytest.fixture
async def zones(client: Client) -> AsyncIterator[NotifiedZones]:
    async with notified_zones(client) as zones:
        yield zones


async def test_a_file_below_the_folder_of_a_zone_has_it_listed(zones: NotifiedZones, tmp_path: Path) -> None:
    orders, rides = tmp_path / "orders", tmp_path / "rides"
    orders.mkdir()
    rides.mkdir()
    await zones.start("orders", orders)
    await zones.start("rides", rides / "*.csv")
    async with zones.receiving():
        await zones.until("orders", 2)  # for files written before the watch began
        await zones.until("rides", 2)
        (orders / "a.csv").write_text("id\n1\n")
        await zones.until("orders", 3)
        assert zones.named["orders"] == [None, None, [str(orders / "a.csv")]]
        (orders / "2026" / "11").mkdir(parents=True)
        (orders / "2026" / "11" / "b.csv").write_text("id\n1\n")
        await zones.until("orders", 4)
        await asyncio.sleep(1.5)
        (tmp_path / "c.csv").write_text("id\n1\n")
        (tmp_path / "c.csv").rename(orders / "2026" / "11" / "c.csv")
        await zones.until("orders", 5)
        assert zones.listings["rides"] == 2
        (rides / "a.csv").write_text("id\n1\n")
        await zones.until("rides", 3)


async def test_a_folder_may_be_made_later_deleted_and_made_again(zones: NotifiedZones, tmp_path: Path) -> None:
    orders = tmp_path / "in" / "orders"
    await zones.start("orders", orders)
    async with zones.receiving():
        await asyncio.sleep(1)
        assert zones.listings["orders"] == 1
        orders.mkdir(parents=True)
        (orders / "a.csv").write_text("id\n1\n")
        await zones.until("orders", 2)
        listings = await settled(zones, "orders")
        shutil.rmtree(tmp_path / "in")
        await asyncio.sleep(1)
        orders.mkdir(parents=True)
        (orders / "a.csv").write_text("id\n1\n")
        await zones.until("orders", listings + 1)
        listings = await settled(zones, "orders")
        (orders / "b.csv").write_text("id\n1\n")
        await zones.until("orders", listings + 1)


async def test_a_file_that_grows_has_its_zone_listed_seldom(zones: NotifiedZones, tmp_path: Path) -> None:
    await zones.start("orders", tmp_path)
    (tmp_path / "a.csv").write_text("id\n")
    async with zones.receiving():
        listings = await settled(zones, "orders")
        with (tmp_path / "a.csv").open("a") as file:
            for number in range(40):
                file.write(f"{number}\n")
                file.flush()
                await asyncio.sleep(0.1)
        assert zones.listings["orders"] <= listings + 1
        (tmp_path / "b.csv").write_text("id\n1\n")
        await zones.until("orders", listings + 1)


async def test_a_name_that_cannot_be_decoded_does_not_end_the_watch(
    zones: NotifiedZones, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await zones.start("orders", tmp_path)
    with caplog.at_level(logging.WARNING):
        async with zones.receiving():
            listings = await settled(zones, "orders")
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")).write_text("x")
            await zones.until("orders", listings + 1)
            listings = await settled(zones, "orders")
            (tmp_path / "b.csv").write_text("id\n1\n")
            await zones.until("orders", listings + 1)
    assert len([message for message in caplog.messages if "are not watched now" in message]) == 1


async def test_a_landing_zone_of_one_file_is_watched_and_a_wide_one_is_not(
    zones: NotifiedZones, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id\n1\n")
    await zones.start("one", file)
    await zones.start("wide", "/home/*/landing/*.csv")
    with caplog.at_level(logging.WARNING):
        async with zones.receiving(sluice_home=tmp_path / "home"):
            listings = await settled(zones, "one")
            (tmp_path / "home" / "arrivals").mkdir(parents=True)
            for number in range(5):
                (tmp_path / "home" / "arrivals" / f"{number}.sqlite").write_text("x")
            (tmp_path / "b.csv").write_text("id\n1\n")
            await asyncio.sleep(2)
            assert zones.listings == {"one": listings, "wide": 1}
            (tmp_path / "new").write_text("id\n2\n")
            (tmp_path / "new").rename(file)
            await zones.until("one", listings + 1)
    assert len([message for message in caplog.messages if "/home/*/landing/*.csv is not watched" in message]) == 1


async def settled(zones: NotifiedZones, name: str) -> int:
    """Return the number of listings of a zone, once they have stopped."""
    await zones.until(name, 2)
    listings = -1
    while listings != zones.listings[name]:
        listings = zones.listings[name]
        await asyncio.sleep(2.5)
    return listings


WATCHED = """
import logging, sys, threading
from runtime.arrivals.notifications import folders
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
stop = threading.Event()
threading.Timer(2.5, stop.set).start()
folders._PAUSES = (0.5,)
folders.FolderWatcher(lambda: {sys.argv[1]: {("zone", ())}}, print, stop).run()
"""


@pytest.mark.parametrize("limit", ["max_inotify_watches", "max_inotify_instances"])
def test_without_a_watch_left_the_log_says_once_that_listings_find_files(limit: str, tmp_path: Path) -> None:
    """The test sets the limit in a user namespace of its own, if the machine permits it."""
    set_limit = f"echo 0 > /proc/sys/user/{limit}"
    if subprocess.run(["unshare", "-Ur", "sh", "-c", set_limit], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody lower the limits of inotify")
    command = f'{set_limit}; exec "$@"'
    ended = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", command, "sh", sys.executable, "-c", WATCHED, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.count("only listings find files there") == 1, ended
    assert "zone" not in ended.stdout.replace("landing zones", "")
