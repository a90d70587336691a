"""A worker that starts before its catalog."""

import asyncio

from sluice.settings import Settings
from worker import open_catalog_when_it_answers


async def test_a_worker_that_waits_for_its_catalog_ends_when_it_is_asked_to() -> None:
    settings = Settings(catalogue="iceberg", iceberg_type="rest", iceberg_uri="http://127.0.0.1:1")
    stop = asyncio.Event()
    opening = asyncio.create_task(open_catalog_when_it_answers(settings, stop))
    await asyncio.sleep(0.5)
    assert not opening.done()
    stop.set()
    assert await asyncio.wait_for(opening, 60) is None
