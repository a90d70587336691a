"""Events of a real versitygw on a real Temporal server. Skipped if versitygw is not available."""

import asyncio
from pathlib import Path

import pytest

from devstack.store_events import answering, event_variables
from tests.harness.notified_zone import NotifiedZones
from tests.harness.object_store import running_store, store_files
from tests.harness.ports import unused_port

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)  # building the store may be necessary
async def test_an_object_has_its_zone_listed_as_long_as_somebody_listens(zones: NotifiedZones, tmp_path: Path) -> None:
    await zones.start("odd", "s3://source/a b+ü%41/")
    await zones.start("other", "s3://source/other/")
    address = f"127.0.0.1:{unused_port()}"
    settings = event_variables(tmp_path / "state", address)

    def write(store: dict[str, str], key: str) -> None:
        with store_files(store).open_output_stream(key) as file:
            file.write(b"id\n1\n")

    with answering(address):  # until the store has started
        running = running_store(tmp_path, "source", "lake", settings=settings)
        store = await asyncio.to_thread(running.__enter__)
    try:
        await asyncio.to_thread(write, store, "source/a b+ü%41/missed.csv")  # nobody listens: the event is lost
        async with zones.receiving(sluice_events_address=address) as receivers:
            await asyncio.sleep(2)
            assert zones.listings == {"odd": 1, "other": 1}
            await asyncio.to_thread(write, store, "source/a b+ü%41/a.csv")
            await zones.until("odd", 2)
            await asyncio.to_thread(write, store, "lake/a b+ü%41/a.csv")
            while not receivers.known.for_nobody:
                await asyncio.sleep(0.1)
            assert zones.listings["other"] == 1
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)
