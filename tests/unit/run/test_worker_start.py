"""A worker that starts before its catalog."""

import asyncio
import socket

import pytest

from sluice.settings import Settings
from tests.harness.waiting import in_time
from worker import open_catalog_when_it_answers


@pytest.mark.parametrize("silent", [False, True])
async def test_a_worker_that_waits_for_its_catalog_ends_when_it_is_asked_to(silent: bool) -> None:
    """The server refuses connections, or accepts the request and does not answer."""
    server = socket.create_server(("127.0.0.1", 0)) if silent else None
    port = server.getsockname()[1] if server else 1
    settings = Settings.of(catalog="rest", iceberg_uri=f"http://127.0.0.1:{port}")
    stop = asyncio.Event()
    opening = asyncio.create_task(open_catalog_when_it_answers(settings, stop))
    await asyncio.sleep(0.5)
    assert not opening.done()
    stop.set()
    assert await in_time(opening) is None
    if server:
        server.close()  # ends the thread that waits for the answer
