"""Pages that people have open: each reads itself again at every event of the server, as in a browser.

    python -m bench.page_readers < GIVEN

`bench.page` starts it, so that the readers have a process of their own. The first line of its input names the page, the
cookie, and the open pages. It prints `ready` when each page has got its first event. At the end of the input it ends,
and prints how often and how fast pages were read.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field

import aiohttp


@dataclass
class Readers:
    """All readers together."""

    origin: str
    cookies: dict[str, str]
    ready: int = 0
    """Number of readers that have got an event."""
    seconds: list[float] = field(default_factory=list)
    """Seconds of each reading of a page."""

    async def follow(self, path: str, stream: str) -> None:
        """Keep a page open until the program ends."""
        unlimited = aiohttp.TCPConnector(limit=0)
        no_end = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(self.origin, cookies=self.cookies, connector=unlimited, timeout=no_end) as session,
            session.get(stream) as events,
        ):
            is_new = True
            async for line in events.content:
                if line.startswith(b"event: runs"):
                    await self._read(session, path)
                    self.ready += is_new
                    is_new = False

    async def _read(self, session: aiohttp.ClientSession, path: str) -> None:
        began = time.monotonic()
        async with session.get(path) as answer:
            await answer.read()
            answer.raise_for_status()
        self.seconds.append(time.monotonic() - began)


async def main() -> None:
    """Follow the pages until the input ends."""
    given = json.loads(sys.stdin.readline())
    readers = Readers(given["origin"], given["cookies"])
    following = [asyncio.create_task(readers.follow(*page)) for page in given["pages"]]
    while readers.ready < len(following):
        await asyncio.sleep(0.1)
        for each in following:
            if each.done():
                each.result()
    readers.seconds.clear()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    failed = [each for each in following if each.done()]
    print(json.dumps({"seconds": readers.seconds, "failed": [str(each.exception()) for each in failed]}), flush=True)
    for each in following:
        each.cancel()
    await asyncio.gather(*following, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
