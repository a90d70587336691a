"""Thread of a receiver whose library blocks: it ends with the task that waits for it."""

import asyncio
import threading
from collections.abc import Callable


async def run_in_thread(run: Callable[[], None], name: str, stop: threading.Event) -> None:
    """Run a receiver in a thread until it ends. If the task is cancelled, set `stop`, which `run` observes."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            await asyncio.sleep(1)
    finally:
        stop.set()
