"""Temporal clients on an event loop of their own, for tests and harnesses that are not coroutines."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from temporalio.client import Client

from runtime.temporal_client import connect

_Answer = TypeVar("_Answer")


class TemporalThread:
    """An event loop in a thread that runs coroutines, with one client for each Temporal server and key."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._clients: dict[tuple[tuple[str, str], ...], Client] = {}
        threading.Thread(target=self._loop.run_forever, name="temporal", daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Run a coroutine to its end; return what it returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def client(self, environment: Mapping[str, str]) -> Client:
        """Return the client that these variables describe. Connect the first time."""
        relevant = {name: value for name, value in environment.items() if name.startswith("TEMPORAL_")}
        relevant["SLUICE_CODEC_KEY_FILE"] = environment.get("SLUICE_CODEC_KEY_FILE", "")
        key = tuple(sorted(relevant.items()))
        if key not in self._clients:
            self._clients[key] = await connect(environment)
        return self._clients[key]


TEMPORAL = TemporalThread()
"""The instance of this process."""
